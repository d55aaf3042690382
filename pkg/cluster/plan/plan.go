// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Rules is in the order in which Plan tries the rules. The first one with something to do
// decides the pass. Rules that protect the data and the quorum precede those that follow the
// spec.
var Rules = []func(*Observation) Step{
	takeBackImport,
	leaveAlone,
	heedRecord,
	KeepPeerService,
	followImport,
	bootstrap,
	followChoice,
	takeBackBadImage,
	recycleBrokenPod,
	followOwner,
	yieldNode,
	remakeLostPods,
	expandWithoutQuorum,
	awaitQuorum,
	noteStarted,
	KeepBudget,
	commitImport,
	removeFormerMember,
	LiftFormerAlarms,
	followAuth,
	KeepClientService,
	DropFormerService,
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

// Plan decides the next step. It depends on the observation only.
func Plan(o *Observation) Step {
	s := follow(o)
	if bridge := o.keepBridge(s); bridge != nil {
		return bridge
	}
	return s
}

// follow returns the step of the first rule with something to do.
func follow(o *Observation) Step {
	for _, rule := range Rules {
		if s := through(o, rule(o)); s != nil {
			return s
		}
	}
	if why := CertificatesHold(o); !why.IsZero() {
		return Idle{why}
	}
	switch planned := o.Planned(); {
	case o.Now.Before(o.Refused.Until):
		return Idle{Reason{PodsRefused, o.Refused.Why}}
	case o.Importing():
		return Idle{o.importIdle()}
	case o.littered():
		return Idle{Reason{WriteUndone, "the operator creates no more members, because Kubernetes refuses to delete pods or volumes that belong to none"}}
	case len(planned) > 0:
		return Idle{because("the pod of " + planned[0].Name + " is starting")}
	case o.Outdated() && o.CheckVersion() != nil:
		return Idle{Reason{VersionRefused, o.CheckVersion().Error()}}
	}
	if p := o.endedLately(); p != nil {
		return Wait{"to replace the pod of " + p.Name + ": " + p.Trouble()}
	}
	if s := o.awaitAuth(); s != nil {
		return s
	}
	return Idle{Reason{Kind: AsSpecified}}
}

// leaveAlone keeps the operator from a cluster. A refused spec does not hide that the cluster
// runs: once the status says so, the operator tolerates what it can of that spec.
func leaveAlone(o *Observation) Step {
	switch {
	case o.Ending && !(o.Import.Held && o.Committed()):
		return Idle{Reason{Kind: BeingDeleted}}
	case o.Spec.Paused:
		return Idle{Reason{Kind: Paused}}
	case o.Invalid != "" && o.Status.Phase == api.ClusterPhaseNone && o.Quorum:
		return MarkRunning{}
	case o.Invalid != "":
		return Idle{Reason{SpecInvalid, o.Invalid}}
	}
	return nil
}

// bootstrap starts the seed. The status records the seed's name before its pod exists, and
// that it served before anything else happens. From then on the cluster holds data, and the
// operator never bootstraps it again.
func bootstrap(o *Observation) Step {
	if o.Importing() && (!o.Copying() || o.Source == nil) {
		return nil // it never starts empty
	}
	switch o.Status.Phase {
	case api.ClusterPhaseRunning:
		return nil
	case api.ClusterPhaseFailed:
		if o.Quorum {
			return MarkRunning{}
		}
		return nil
	}
	if s := removeStraySeed(o); s != nil {
		return s
	}
	// The others join only after the record says that the seed has served. While the record names
	// the seed, a pod in which perhaps only the launcher ran shows nothing.
	named := o.Status.Phase == api.ClusterPhaseCreating && len(o.Status.Members.Unready) > 0
	if o.Quorum || slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool { return p.Started && !p.Seed && !(p.Unproven && named) }) {
		// This also holds if somebody wiped the status: the operator adopts running members.
		return MarkRunning{}
	}
	if o.Status.Phase == api.ClusterPhaseNone && len(o.Volumes) > 0 {
		// Volumes come after the record of the seed's name, which somebody wiped: they may
		// hold data.
		return MarkRunning{}
	}
	if why := o.SourceUnknown(); !why.IsZero() {
		return Idle{why}
	}
	if o.Source != nil {
		return bootstrapRestored(o)
	}
	if len(o.Status.Members.Unready) == 0 {
		if seed := slices.IndexFunc(o.Pods, func(p manifest.PodState) bool { return p.Seed && !p.Deleting && !p.Finished }); seed >= 0 {
			return ChooseSeed{Name: o.Pods[seed].Name}
		}
		if o.PodsOfOthers > 0 {
			return Idle{Reason{Kind: EarlierPods}}
		}
		return ChooseSeed{Name: o.newName()}
	}
	seed := o.Pod(o.Status.Members.Unready[0])
	image := o.Image(o.Spec.EffectiveVersion())
	switch {
	case seed == nil:
		return CreatePods{Pods: []manifest.MemberPod{o.seedPod(o.Status.Members.Unready[0])}, why: "bootstrap"}
	case seed.Deleting && o.Now.After(seed.DeleteBy):
		// Its node is gone. It can't hold any writes.
		return ChooseSeed{Name: o.newName()}
	case seed.Deleting:
		return Idle{because("the seed's pod is being deleted")}
	case seed.Finished:
		return removeSeed(*seed, "the seed's pod has ended: "+seed.Trouble())
	case seed.Image != image && !seed.Running:
		return removeSeed(*seed, "the image was changed to "+image+" before the seed served")
	case o.awaitsOldVolume(*seed):
		return removeSeed(*seed, volumeEdited)
	case o.podOutdated(*seed) && !seed.Running:
		return removeSeed(*seed, "the spec was changed before the seed served")
	}
	if s := yieldNode(o); s != nil {
		return s
	}
	if further := o.followers(seed.Name); seed.IP != "" && seed.Problem == "" && len(further) > 0 {
		return CreatePods{Pods: further, why: "the seed has an address"}
	}
	if s := expandWithoutQuorum(o); s != nil {
		return s // it may not have started for lack of space
	}
	switch {
	case seed.Running:
		return Wait{"for the seed to serve"}
	default:
		return Idle{because("the seed's pod is starting")}
	}
}

// volumeEdited is why a seed without a volume goes. The next one of its name gets another claim.
const volumeEdited = "its volume does not exist yet, and the spec now asks for another one"

// awaitQuorum ends the plan without a quorum: etcd accepts no change then, and a change forced
// from outside could lose writes.
func awaitQuorum(o *Observation) Step {
	if o.Quorum {
		return nil
	}
	if o.Importing() && !o.Copying() {
		if o.Spec.ImportFrom == nil {
			return Idle{Reason{ImportHeld, "for " + putImportBack}}
		}
		return Wait{"for a quorum of the imported etcd and the members that have joined it" + o.importProblem()}
	}
	// A deleted pod counts: on a node without a connection, etcd may run on and serve.
	if len(o.Volumes) > 0 || slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool { return p.Started && !p.Finished }) {
		return Wait{"for a quorum"}
	}
	if o.Status.Phase != api.ClusterPhaseFailed {
		return MarkFailed{NoMembersLeft}
	}
	return Idle{because("all members are lost")}
}

// NoMembersLeft says that only a person can restore the cluster.
const NoMembersLeft = "all members and their data are gone. The operator never replaces lost data with an empty cluster: " +
	"restore a backup (EtcdRestore), or delete this EtcdCluster and create it again to start empty"

// takeBackBadImage changes the image of members' pods that does not run. The new image has the
// spec's version if that has the previous minor. Otherwise it has the previous version, because
// an upgrade must not skip a minor. The rule needs no quorum: such a pod serves nothing, and a
// bad version may be what took the quorum.
func takeBackBadImage(o *Observation) Step {
	for _, p := range o.Pods {
		if p.ImagePutOff {
			continue // another pod may give the quorum back
		}
		switch missing := missesImage(p); {
		case missing && o.mayJoinAsNextPatch(p):
			return SetVersion{Pod: p.Name, UID: p.UID, From: p.Version, To: o.Spec.EffectiveVersion(), Admitted: p.Admitted}
		case !missing && !o.crashesOnFormerImage(p) || !o.hasRun(p):
		case !has(p, o.Image(p.Version)):
			return o.setVersion(p, p.Version, p.Previous) // another repository
		case o.mayTakeNextPatch(p):
			return o.setVersion(p, o.Spec.EffectiveVersion(), p.Version)
		}
		if manifest.Holds(p.Version, o.Status.CurrentVersion) {
			continue // the cluster runs it: a crash of etcd has another reason
		}
		if !o.hasRun(p) || !p.BadImage && !p.Crashing || p.Running || p.Deleting || p.Finished || p.Version == o.Spec.EffectiveVersion() {
			continue
		}
		ran, err := etcd.ParseVersion(p.Previous)
		if err != nil {
			if ran, err = o.runningVersion(); err != nil {
				continue
			}
		}
		to, err := etcd.ParseVersion(o.Spec.EffectiveVersion())
		if err != nil || to.Minor != ran.Minor {
			to = ran
		}
		if p.Version != to.String() {
			return o.setVersion(p, to.String(), ran.String())
		}
	}
	return nil
}

// missesImage reports whether etcd does not run in a pod because its image is unavailable.
func missesImage(p manifest.PodState) bool {
	return p.BadImage && !p.Running && !p.Deleting && !p.Finished
}

// crashesOnFormerImage reports whether etcd crashes in a pod that has the spec's version from another
// repository: somebody may have taken back the edit of it. While a member with the spec's image does not run,
// that image may be what is bad: it must cost one member at most.
func (o *Observation) crashesOnFormerImage(p manifest.PodState) bool {
	if !p.Crashing || p.Running || p.Deleting || p.Finished || !o.BehindImage(MemberState{Pod: &p}) {
		return false
	}
	return !o.oneIsDown(func(other manifest.PodState) bool { return has(other, o.Image(p.Version)) })
}

// oneIsDown reports whether etcd has run on the data of a pod with a certain image, and does not now.
func (o *Observation) oneIsDown(with func(manifest.PodState) bool) bool {
	return slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool { return with(p) && !p.Running && o.hasRun(p) })
}

// mayTakeNextPatch reports whether a pod may get the version of the spec, although its own is what the
// cluster runs: a registry may have deleted that image. A later patch opens the same data. While a member with
// that patch does not run, the patch may be bad: it must cost one member at most.
func (o *Observation) mayTakeNextPatch(p manifest.PodState) bool {
	if !manifest.Holds(p.Version, o.Status.CurrentVersion) {
		return false
	}
	target := o.Spec.EffectiveVersion()
	if o.oneIsDown(func(other manifest.PodState) bool { return other.Version == target }) {
		return false
	}
	return o.nextPatchOf(p.Version)
}

// hasRun reports whether etcd has run on a pod's data.
func (o *Observation) hasRun(p manifest.PodState) bool { return p.Started || o.returns(p) }

// returns reports whether a pod is that of a member that returns to its volume, on which etcd has run.
// If its image is unavailable from the start, etcd has not run in the pod itself.
func (o *Observation) returns(p manifest.PodState) bool {
	v := o.Volume(p.Name)
	return !p.Seed && v != nil && !v.Deleting && v.Version != ""
}

// discardPod deletes pods that no member needs: those of removed members, and those created
// for another membership than today's. One that Kubernetes refuses to delete does not hold back later
// rules, but it does not join either.
func discardPod(o *Observation) Step {
	for _, p := range o.Pods {
		if o.IsMember(p.Name) || p.Deleting || p.DeletePutOff {
			continue
		}
		if o.ended(p) && o.Now.Sub(p.Created) < holdUpDeadline {
			continue // endedLately
		}
		if o.ended(p) {
			return removePod(p, "it could not start: "+p.Trouble())
		}
		if p.Started || p.Finished || p.Seed {
			return removePod(p, "it is no member of the cluster")
		}
	}
	planned := o.Planned()
	slices.Reverse(planned) // the last to join goes first
	for i, p := range planned {
		switch surplus := len(o.Own()) + len(planned) - i - o.size(); {
		case p.DeletePutOff:
		case surplus > 0:
			return removePod(p, "it is more than the size asks for")
		case !o.canJoin(p.InitialCluster):
			return removePod(p, "the membership it was made for has changed")
		case !o.hasJoinImage(p):
			return removePod(p, "the image for new members is now "+o.Image(o.joinVersion()))
		case o.podOutdated(p) || o.volumeOutdated(MemberState{Pod: &p, Volume: o.Volume(p.Name)}):
			return removePod(p, "the spec has changed since it was made")
		case !p.Scheduled && o.Now.Sub(p.Created) > holdUpDeadline && slices.ContainsFunc(planned, func(other manifest.PodState) bool { return other.AtGate }):
			return DeletePod{Name: p.Name, UID: p.UID, Why: "others that could join wait for it: " + p.Trouble(), HeldUp: true}
		case p.AtGate && (len(o.Learners()) > 0 || !slices.ContainsFunc(planned, func(other manifest.PodState) bool { return !other.AtGate })):
			// It waits for its turn, which a learner with a copy of a large database delays, or
			// etcd's refusal to add a member. Another pod would wait as well.
		case o.Now.Sub(p.Created) > joinDeadline:
			return removePod(p, "it could not start: "+p.Trouble())
		}
	}
	return nil
}
