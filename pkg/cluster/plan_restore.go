// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// quickRestore is up to which size of a backup the time from its arrival at the
// seed until the seed serves is short enough for further members to wait for it.
const quickRestore = 1 << 30

// restoreHeld begins what status and events say while nobody knows what the first
// member is to start on.
const restoreHeld = "the first member is not made, for it is to start on a backup: "

const wayOn = "; delete this EtcdCluster, and the EtcdRestore that is under way makes it again; " +
	"without one, create it again, and without the annotation if it is to begin empty"

// sourceUnknown says why nobody knows what the seed is to start on; empty if that is
// known. A cluster that is to be restored is never begun empty instead.
func (o *observation) sourceUnknown() string {
	switch {
	case o.sourceUnreadable != "":
		return restoreHeld + o.sourceUnreadable + wayOn
	case o.source == nil && o.status.RestoredFrom != nil:
		return restoreHeld + "the annotation " + api.RestoreAnnotation + " is gone, which tells on which" + wayOn
	}
	return ""
}

// removeStraySeed removes a seed that starts on another backup than is on record,
// also when it serves: what runs is what the record says. It is one of an annotation
// that was changed before anything served.
// Or it is the empty one of an etcd operator that knows nothing of restores.
func removeStraySeed(o *observation) step {
	if o.status.Phase != api.ClusterPhaseCreating || o.status.RestoredFrom == nil && o.source == nil {
		return nil
	}
	for _, p := range o.pods {
		content, _, _ := strings.Cut(p.source, "-")
		switch {
		case !p.seed || o.status.RestoredFrom != nil && content == contentDigest(o.status.RestoredFrom):
		case o.status.RestoredFrom == nil && content != "":
		case !p.deleting:
			return p.removeSeed("it starts on something else than the backup on record")
		case !o.now.After(p.deleteBy):
			return idle{"the pod of an earlier seed is being deleted"}
		}
	}
	return nil
}

// bootstrapRestored brings up a seed on the data of a backup. As in any bootstrap,
// its name is on record before its pod is made, and with it the backup. A seed that
// was lost keeps its name: where its volume holds restored data, it goes on with
// that. One that has to be made in another way gets another name, and with it a new
// volume: data that was restored for something else is not built on.
//
// Further members are made when the seed has the backup, and not with it: there is
// no bound on how long it waits for that, and there is one on how long they wait
// for the seed.
func bootstrapRestored(o *observation) step {
	if len(o.status.Members.Unready) == 0 {
		if i := slices.IndexFunc(o.pods, o.startsOnSource); i >= 0 {
			return chooseSeed{name: o.pods[i].name, source: o.source}
		}
		if o.strangers > 0 {
			return idle{strangersThere}
		}
		return chooseSeed{name: o.newName(), source: o.source}
	}
	another := func(why string) step { return chooseSeed{name: o.newName(), source: o.source, why: why} }
	name := o.status.Members.Unready[0]
	seed := o.pod(name)
	started := seed != nil && seed.started
	if from := o.status.RestoredFrom; !started && (from == nil || from.RestoreUID != o.source.RestoreUID || from.SHA256 != o.source.SHA256) {
		return another("another backup was put into the annotation before the seed served")
	}
	for _, p := range o.pods {
		switch {
		case !p.seed || p.name == name || p.deleting && o.now.After(p.deleteBy):
		case p.deleting:
			return idle{"the pod of an earlier seed is being deleted"}
		default:
			return p.removeSeed("another seed was chosen")
		}
	}
	if started {
		return awaitStartedSeed(o, *seed)
	}
	image := o.image(o.spec.EffectiveVersion())
	switch {
	case seed == nil:
		return createPods{pods: bootstrapPods(o, name)[:1], why: "restore"}
	case seed.deleting && o.now.After(seed.deleteBy):
		return another("its node is gone")
	case seed.deleting:
		return idle{"the seed's pod is being deleted"}
	case seed.finished:
		return seed.removeSeed("the seed's pod has ended: " + seed.trouble())
	case seed.image != image:
		return another("the image was changed to " + image + " before the seed served")
	case o.podOutdated(*seed):
		return another("the spec was changed before the seed served")
	case seed.source != sourceDigest(o.source):
		return another("the annotation was changed before the seed served")
	}
	if further := o.furtherMembers(seed); len(further) > 0 {
		return createPods{pods: further, why: "the seed has the backup"}
	}
	return idle{"the seed's pod is starting"}
}

// awaitStartedSeed goes on with a seed whose etcd has run: the client Service may have
// led to it before that was on record. It keeps its name and its volume, and with them
// what clients wrote.
func awaitStartedSeed(o *observation, seed podState) step {
	image := o.image(o.spec.EffectiveVersion())
	failing := !seed.running && (seed.crashing || seed.badImage)
	switch {
	case seed.deleting && o.now.After(seed.deleteBy) && o.volume(seed.name) == nil:
		return chooseSeed{name: o.newName(), source: o.source, why: "its node is gone, and its data with it"}
	case seed.deleting && o.now.After(seed.deleteBy):
		return idle{"the node of the seed's pod is gone, and its volume may hold what was written since the restore: when the node has surely ended, delete the pod by force (kubectl delete pod --force " + seed.name + ")"}
	case seed.deleting:
		return idle{"the seed's pod is being deleted"}
	case seed.finished:
		return seed.removeSeed("the seed's pod has ended: " + seed.trouble())
	case seed.image != image && failing:
		return seed.removeSeed("the image was changed to " + image + " before the seed served")
	case o.podOutdated(seed) && failing:
		return seed.removeSeed("the spec was changed before the seed served")
	}
	if further := o.furtherMembers(&seed); len(further) > 0 {
		return createPods{pods: further, why: "the seed has the backup"}
	}
	return wait{"for the seed to serve"}
}

// startsOnSource tells a seed's pod that was made for the backup of now, of which
// the record was lost.
func (o *observation) startsOnSource(p podState) bool {
	return p.seed && !p.deleting && !p.finished && p.source == sourceDigest(o.source)
}

// furtherMembers are the pods of members that follow a seed that will soon serve.
func (o *observation) furtherMembers(seed *podState) []newPod {
	soon := seed.atGate || seed.running || seed.preparing == restoreContainer && o.source.Size <= quickRestore
	if !soon || seed.problem != "" {
		return nil
	}
	return bootstrapPods(o, seed.name)[1:]
}

// restoredFrom is the record of a backup.
func restoredFrom(source *api.SeedBackup) *api.RestoredFrom {
	if source == nil {
		return nil
	}
	return &api.RestoredFrom{
		Restore: source.Restore, RestoreUID: source.RestoreUID, Key: source.Key, SHA256: source.SHA256,
		EtcdRevision: source.EtcdRevision, BumpRevision: source.BumpRevision,
	}
}

// restoring says how far a cluster's first member has come that starts on a backup;
// empty for other clusters, and once it has served.
func restoring(o *observation, s step) string {
	if o.status.Phase != api.ClusterPhaseNone && o.status.Phase != api.ClusterPhaseCreating {
		return ""
	}
	if _, serves := s.(markRunning); serves {
		return ""
	}
	if why := o.sourceUnknown(); why != "" || o.source == nil {
		return why
	}
	backup := "the backup " + o.source.Key
	var seed *podState
	if len(o.status.Members.Unready) > 0 {
		seed = o.pod(o.status.Members.Unready[0])
	}
	if idles, ok := s.(idle); ok && seed == nil {
		return idles.why
	}
	switch {
	case seed == nil || seed.deleting:
		return "the first member is to start on " + backup
	case seed.problem != "":
		return fmt.Sprintf("member %s can't start on %s: %s", seed.name, backup, seed.problem)
	case seed.preparing == fetchContainer && seed.scheduled:
		return fmt.Sprintf("member %s fetches %s; kubectl logs %s -c %s tells how far it is", seed.name, backup, seed.name, fetchContainer)
	case seed.preparing == restoreContainer:
		return fmt.Sprintf("member %s restores %s", seed.name, backup)
	}
	return fmt.Sprintf("member %s starts on %s", seed.name, backup)
}
