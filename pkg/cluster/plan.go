// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// rules are tried in this order; the first that has something to do decides the
// pass. What keeps the data and the quorum comes before what meets the spec.
var rules = []func(*observation) step{
	leaveAlone,
	heedRecord,
	keepPeerService,
	bootstrap,
	takeBackBadImage,
	recycleBrokenPod,
	remakeLostPods,
	awaitQuorum,
	noteStarted,
	liftFormerAlarms,
	keepClientService,
	dropFormerService,
	keepBudget,
	replaceLostMember,
	replaceWedgedMember,
	dropSurplusLearner,
	dropStuckLearner,
	makeAddedMembersPod,
	awaitJoiningVoter,
	discardPod,
	discardVolume,
	joinPlanned,
	promoteLearner,
	awaitLearners,
	removeOneMember,
	addMembers,
	updateMetadata,
	expandVolumes,
	updateOneMember,
	upgradeOneMember,
}

// plan decides the next step. It depends on the observation alone.
func plan(o *observation) step {
	for _, rule := range rules {
		s := rule(o)
		if s != nil {
			s = awaitPermission(o, s)
		}
		if s != nil {
			s = o.held(s)
		}
		if s != nil {
			return s
		}
	}
	if why := certificatesHold(o); why != "" {
		return idle{why}
	}
	switch planned := o.planned(); {
	case o.now.Before(o.refused.until):
		return idle{podsRefused + o.refused.why}
	case len(planned) > 0:
		return idle{"the pod of " + planned[0].name + " is starting"}
	case o.outdated() && o.checkVersion() != nil:
		return idle{"the version is refused: " + o.checkVersion().Error()}
	}
	return idle{asSpecified}
}

// The ends of a plan in which nothing is waited for.
const (
	asSpecified  = "the cluster is as specified"
	beingDeleted = "the EtcdCluster is being deleted"
	isPaused     = "spec.paused is true"
)

func leaveAlone(o *observation) step {
	switch {
	case o.ending:
		return idle{beingDeleted}
	case o.spec.Paused:
		return idle{isPaused}
	case o.invalid != "":
		return idle{"the spec is invalid: " + o.invalid}
	}
	return nil
}

// bootstrap brings up the seed. Its name is recorded before its pod is made, and
// that it served is recorded before anything else happens: from then on the
// cluster holds data, and is never bootstrapped again by the operator.
func bootstrap(o *observation) step {
	switch o.status.Phase {
	case api.ClusterPhaseRunning:
		return nil
	case api.ClusterPhaseFailed:
		if o.quorum {
			return markRunning{}
		}
		return nil
	}
	if s := removeStraySeed(o); s != nil {
		return s
	}
	if o.quorum || slices.ContainsFunc(o.pods, func(p podState) bool { return p.started && !p.seed }) {
		// Also when the status was wiped: what runs is taken over.
		return markRunning{}
	}
	if o.status.Phase == api.ClusterPhaseNone && len(o.volumes) > 0 {
		// Volumes are made after the seed's name is on record, which was wiped:
		// they may hold data.
		return markRunning{}
	}
	if why := o.sourceUnknown(); why != "" {
		return idle{why}
	}
	if o.source != nil {
		return bootstrapRestored(o)
	}
	if len(o.status.Members.Unready) == 0 {
		if seed := slices.IndexFunc(o.pods, func(p podState) bool { return p.seed && !p.deleting && !p.finished }); seed >= 0 {
			return chooseSeed{name: o.pods[seed].name}
		}
		if o.strangers > 0 {
			return idle{strangersThere}
		}
		return chooseSeed{name: o.newName()}
	}
	seed := o.pod(o.status.Members.Unready[0])
	image := o.image(o.spec.EffectiveVersion())
	switch {
	case seed == nil:
		return createPods{pods: bootstrapPods(o, o.status.Members.Unready[0]), why: "bootstrap"}
	case seed.deleting && o.now.After(seed.deleteBy):
		// Its node is gone. Nothing was written that it could hold.
		return chooseSeed{name: o.newName()}
	case seed.deleting:
		return idle{"the seed's pod is being deleted"}
	case seed.finished:
		return seed.removeSeed("the seed's pod has ended: " + seed.trouble())
	case seed.image != image && !seed.running:
		return seed.removeSeed("the image was changed to " + image + " before the seed served")
	case o.podOutdated(*seed) && !seed.running:
		return seed.removeSeed("the spec was changed before the seed served")
	case seed.running:
		return wait{"for the seed to serve"}
	default:
		return idle{"the seed's pod is starting"}
	}
}

const strangersThere = "pods of an earlier cluster of this name are still there"

// awaitQuorum ends the plan where nothing can be agreed on: without a quorum etcd
// takes no change, and a change forced from outside could lose writes.
func awaitQuorum(o *observation) step {
	if o.quorum {
		return nil
	}
	if len(o.volumes) > 0 || slices.ContainsFunc(o.pods, func(p podState) bool { return p.started && !p.finished && !p.deleting }) {
		return wait{"for a quorum"}
	}
	if o.status.Phase != api.ClusterPhaseFailed {
		return markFailed{noMembersLeft}
	}
	return idle{"all members are lost"}
}

const noMembersLeft = "all members and their data are gone. The operator never replaces them by an empty cluster on its own: " +
	"restore a backup (EtcdRestore), or delete this EtcdCluster and create it again to start empty"

// takeBackBadImage gives pods of members whose image doesn't run another version:
// that of the spec if it is of the minor that ran before, else the one that ran,
// for an upgrade takes its steps. It needs no quorum: such a pod serves nothing,
// and a bad version may be what took the quorum.
func takeBackBadImage(o *observation) step {
	for _, p := range o.pods {
		if p.started && p.badImage && !p.running && !p.deleting && !p.finished && p.image != o.image(p.version) {
			return setVersion{pod: p.name, uid: p.uid, from: p.version, to: p.version, previous: p.previous, admitted: p.admitted} // another repository
		}
		if sameVersion(p.version, o.status.CurrentVersion) {
			continue // the cluster runs it: etcd that crashes has another reason
		}
		if !p.started || !p.badImage && !p.crashing || p.running || p.deleting || p.finished || p.version == o.spec.EffectiveVersion() {
			continue
		}
		ran, err := etcd.ParseVersion(p.previous)
		if err != nil {
			if ran, err = o.runningVersion(); err != nil {
				continue
			}
		}
		to, err := etcd.ParseVersion(o.spec.EffectiveVersion())
		if err != nil || to.Minor != ran.Minor {
			to = ran
		}
		if p.version != to.String() {
			return setVersion{pod: p.name, uid: p.uid, from: p.version, to: to.String(), previous: ran.String(), admitted: p.admitted}
		}
	}
	return nil
}

// discardPod deletes pods that no member needs: those of removed members, and
// those made ahead for a membership that has become another.
func discardPod(o *observation) step {
	for _, p := range o.pods {
		if o.isMember(p.name) || p.deleting {
			continue
		}
		if p.started || p.finished || p.seed {
			return p.remove("it is no member of the cluster")
		}
	}
	planned := o.planned()
	slices.Reverse(planned) // the last to join goes first
	for i, p := range planned {
		switch surplus := len(o.own()) + len(planned) - i - o.size(); {
		case surplus > 0:
			return p.remove("it is more than the size asks for")
		case !o.canJoin(p.initialCluster):
			return p.remove("the membership it was made for has changed")
		case p.image != o.image(o.joinVersion()):
			return p.remove("the image for new members is now " + o.image(o.joinVersion()))
		case o.podOutdated(p) || o.volumeOutdated(memberState{pod: &p, volume: o.volume(p.name)}):
			return p.remove("the spec has changed since it was made")
		case !p.scheduled && o.now.Sub(p.created) > holdUpDeadline && slices.ContainsFunc(planned, func(other podState) bool { return other.atGate }):
			return p.remove("others that could join wait for it: " + p.trouble())
		case p.atGate && len(o.learners()) > 0:
			// It waits for its turn, which a learner that copies a large database puts off.
		case o.now.Sub(p.created) > joinDeadline:
			return p.remove("it could not start: " + p.trouble())
		}
	}
	return nil
}
