// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// quickRestore is the size of a backup up to which further members can wait for the seed, from
// the backup's arrival until the seed serves.
const quickRestore = 1 << 30

const wayOn = "; delete this EtcdCluster, and an unfinished EtcdRestore recreates it; " +
	"without one, create it again, without the annotation if it must start empty"

// SourceUnknown says why the seed's backup is unknown; zero if it is known. A cluster that
// waits for a restore never starts empty instead.
func (o *Observation) SourceUnknown() Reason {
	switch {
	case o.SourceUnreadable != "":
		return Reason{RestoreHeld, o.SourceUnreadable + wayOn}
	case o.Source == nil && o.Status.RestoredFrom != nil:
		return Reason{RestoreHeld, "the annotation " + api.RestoreAnnotation + " is gone, which names the backup" + wayOn}
	}
	return Reason{}
}

// removeStraySeed removes a seed that starts on another backup than the recorded one, even if
// it serves: the record decides. Such a seed comes from an annotation that somebody changed
// before anything served. Or an etcd operator without support for restores created it empty.
func removeStraySeed(o *Observation) Step {
	if o.Status.Phase != api.ClusterPhaseCreating || o.Status.RestoredFrom == nil && o.Source == nil {
		return nil
	}
	for _, p := range o.Pods {
		content, _, _ := strings.Cut(p.Source, "-")
		switch {
		case !p.Seed || o.Status.RestoredFrom != nil && content == manifest.ContentDigest(o.Status.RestoredFrom):
		case o.Status.RestoredFrom == nil && content != "":
		case !p.Deleting:
			return removeSeed(p, "it starts on something else than the backup on record")
		case !o.Now.After(p.DeleteBy):
			return Idle{because("the pod of an earlier seed is being deleted")}
		}
	}
	return nil
}

// bootstrapRestored starts a seed on the data of a backup, or of a running etcd. As in any bootstrap, the status
// records its name, and here the backup, before its pod exists. A lost seed keeps its name: if
// its volume holds restored data, it continues with that. A seed with another source gets
// another name, and with it a new volume: it must not build on data restored for something
// else.
//
// The operator creates further members after the seed has received the backup. The seed waits
// without limit for the backup; the other members wait for the seed with one.
func bootstrapRestored(o *Observation) Step {
	if len(o.Status.Members.Unready) == 0 {
		if i := slices.IndexFunc(o.Pods, o.startsOnSource); i >= 0 {
			return ChooseSeed{Name: o.Pods[i].Name, Source: o.Source}
		}
		if o.PodsOfOthers > 0 {
			return Idle{Reason{Kind: EarlierPods}}
		}
		return ChooseSeed{Name: o.newName(), Source: o.Source}
	}
	another := func(why string) Step { return ChooseSeed{Name: o.newName(), Source: o.Source, why: why} }
	name := o.Status.Members.Unready[0]
	seed := o.Pod(name)
	started := seed != nil && seed.Started
	if from := o.Status.RestoredFrom; !started && o.Source.Copy == nil && (from == nil || from.RestoreUID != o.Source.RestoreUID || from.SHA256 != o.Source.SHA256) {
		return another("another backup was put into the annotation before the seed served")
	}
	for _, p := range o.Pods {
		switch {
		case !p.Seed || p.Name == name || p.Deleting && o.Now.After(p.DeleteBy):
		case p.Deleting:
			return Idle{because("the pod of an earlier seed is being deleted")}
		default:
			return removeSeed(p, "another seed was chosen")
		}
	}
	if started {
		return awaitStartedSeed(o, *seed)
	}
	image := o.Image(o.Spec.EffectiveVersion())
	switch {
	case seed == nil:
		return CreatePods{Pods: []manifest.MemberPod{o.seedPod(name)}, why: restoreWhy(o.Source)}
	case seed.Deleting && o.Now.After(seed.DeleteBy):
		return another("its node is gone")
	case seed.Deleting:
		return Idle{because("the seed's pod is being deleted")}
	case seed.Finished:
		return removeSeed(*seed, "the seed's pod has ended: "+seed.Trouble())
	case seed.Image != image:
		return another("the image was changed to " + image + " before the seed served")
	case o.podOutdated(*seed):
		return another("the spec was changed before the seed served")
	case seed.Source != manifest.SourceDigest(o.Source):
		return another("the annotation, or spec.importFrom, was changed before the seed served")
	case o.awaitsOldVolume(*seed):
		return removeSeed(*seed, volumeEdited)
	}
	if s := o.prepareOthers(seed); s != nil {
		return s
	}
	if s := expandWithoutQuorum(o); s != nil {
		return s // it may not have started for lack of space
	}
	return Idle{because("the seed's pod is starting")}
}

// awaitStartedSeed continues with a seed whose etcd has run: the client Service may have led
// to it before the record. The seed keeps its name and its volume, and with them the clients'
// writes.
func awaitStartedSeed(o *Observation, seed manifest.PodState) Step {
	image := o.Image(o.Spec.EffectiveVersion())
	failing := !seed.Running && (seed.Crashing || seed.BadImage)
	switch {
	case seed.Deleting && o.Now.After(seed.DeleteBy) && o.Volume(seed.Name) == nil:
		return ChooseSeed{Name: o.newName(), Source: o.Source, why: "its node is gone, and its data with it"}
	case seed.Deleting && o.Now.After(seed.DeleteBy):
		return Idle{because("the node of the seed's pod is gone, and its volume may hold what was written since the restore: when the node has surely ended, delete the pod by force (kubectl delete pod --force " + seed.Name + ")")}
	case seed.Deleting:
		return Idle{because("the seed's pod is being deleted")}
	case seed.Finished:
		return removeSeed(seed, "the seed's pod has ended: "+seed.Trouble())
	case seed.Image != image && failing:
		return removeSeed(seed, "the image was changed to "+image+" before the seed served")
	case o.podOutdated(seed) && failing:
		return removeSeed(seed, "the spec was changed before the seed served")
	}
	if s := o.prepareOthers(&seed); s != nil {
		return s
	}
	if s := expandWithoutQuorum(o); s != nil {
		return s // it may not have started for lack of space
	}
	return Wait{"for the seed to serve"}
}

func restoreWhy(source *api.SeedBackup) string {
	if source.Copy != nil {
		return "copy"
	}
	return "restore"
}

// startsOnSource reports whether a seed's pod was built for the current backup, after the loss
// of the record.
func (o *Observation) startsOnSource(p manifest.PodState) bool {
	return p.Seed && !p.Deleting && !p.Finished && p.Source == manifest.SourceDigest(o.Source)
}

// prepareOthers makes the pods that follow a seed, unless such a pod has its node.
func (o *Observation) prepareOthers(seed *manifest.PodState) Step {
	if s := yieldNode(o); s != nil {
		return s
	}
	if further := o.furtherMembers(seed); len(further) > 0 {
		return CreatePods{Pods: further, why: "the seed has the backup"}
	}
	return nil
}

// furtherMembers returns the pods of members that follow a seed that will soon serve.
func (o *Observation) furtherMembers(seed *manifest.PodState) []manifest.MemberPod {
	soon := seed.AtGate || seed.Running || seed.Preparing == manifest.RestoreContainer && o.Source.Size <= quickRestore
	if !soon || seed.Problem != "" {
		return nil
	}
	return o.followers(seed.Name)
}
