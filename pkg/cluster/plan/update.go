// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// recycleBrokenPod recreates a pod that does not run and follows an older template than the
// spec's. It needs no quorum: such a pod serves nothing, its data is on a volume, and the
// template may be what took the quorum. The new template may be worse. So a pod whose etcd has
// only just ended keeps its template. A pod that has started since its observation keeps it
// too.
func recycleBrokenPod(o *Observation) Step {
	if o.Status.Phase != api.ClusterPhaseRunning && o.Status.Phase != api.ClusterPhaseFailed || o.UpdatePutOff {
		return nil
	}
	for _, p := range o.Pods {
		v := o.Volume(p.Name)
		ended := p.Started && !p.Crashing // the kubelet is about to restart it
		if v != nil && !v.Deleting && o.podOutdated(p) && !p.Running && !p.Deleting && !p.DeletePutOff && p.Problem != "" && !ended {
			return RecyclePod{Name: p.Name, UID: p.UID, Seen: p.Seen, Version: p.Version, Why: "it does not run: " + p.Problem}
		}
	}
	return nil
}

// updateMetadata updates labels and annotations of running pods, and records on volumes which
// etcd runs on them.
func updateMetadata(o *Observation) Step {
	for _, p := range o.Pods {
		if p.MetadataOutdated && !p.Deleting && !p.Finished {
			return SetMetadata{Pod: p.Name, UID: p.UID, Template: o.Template}
		}
	}
	for _, m := range o.Own() {
		if owner := ownerToRecord(m); owner.Known && m.Healthy() && !m.Volume.Deleting && !m.Volume.PutOff {
			return SetVolumeOwner{Name: m.Volume.Name, UID: m.Volume.UID, Owner: owner}
		}
		if m.Volume != nil && !m.Volume.Deleting && !m.Volume.PutOff && m.Status != nil && m.Volume.Version != o.dataVersion(m) && !o.aboutToRun(m) {
			return SetVolumeVersion{Name: m.Volume.Name, UID: m.Volume.UID, Version: o.dataVersion(m)}
		}
	}
	return nil
}

// aboutToRun reports whether a member's volume names the version to which the member is about to
// restart: that of its pod, or the next one of its pod.
func (o *Observation) aboutToRun(m MemberState) bool {
	return m.Pod != nil && !o.mislabelled(m) && slices.Contains([]string{m.Pod.Version, o.Spec.EffectiveVersion()}, m.Volume.Version)
}

// updateOneMember lets one member follow an edit of the template. A member that keeps its data
// gets a new pod on its volume. A new member replaces any other, and joins first. The rule
// continues with the next member only when all are healthy and caught up. The leader comes
// last, and transfers leadership before.
func updateOneMember(o *Observation) Step {
	if o.Importing() {
		return nil
	}
	behind := o.behind()
	if len(behind) == 0 {
		return nil
	}
	if o.PeersRefuse() {
		return o.restartRefusing()
	}
	for _, m := range behind {
		if o.dataDiffers() && !m.Pod.Dataless {
			continue // its data may be the right one
		}
		if !m.Healthy() && !m.Pod.Running && m.Pod.Problem != "" && o.needsReplacing(m) && o.quorumWithout(m) {
			return m.remove(true, "it does not run, and the spec has changed since its pod was made")
		}
	}
	if o.UpdatePutOff {
		return nil
	}
	if s := o.unsettled(); s != nil {
		return s
	}
	if why := cmp.Or(o.short(), o.returning()); why != "" {
		return Wait{why}
	}
	next, _ := o.nextBehind()
	if o.needsReplacing(next) {
		if o.littered() || o.endedLately() != nil {
			return nil
		}
		if len(o.Planned()) > 0 {
			return o.makeRoom(next)
		}
		why := next.PodName + " is to be replaced by a member that follows the spec"
		if !o.Gate {
			return o.add(o.newName())
		}
		return CreatePods{Pods: o.joinPods(nil, 1, o.joinVersion()), why: why}
	}
	if next.Pod.DeletePutOff {
		return nil
	}
	voters := o.Voters()
	if slices.ContainsFunc(voters, MemberState.Foreign) && Count(voters, MemberState.Healthy)-1 < etcd.Quorum(len(voters)) {
		return Idle{because("members that the operator did not create may be down: the restart of one more could lose the quorum")}
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	return recycle(*next.Pod, "the spec has changed since it was made")
}

// behind returns the members that have not followed an edit of the template, sorted by name.
func (o *Observation) behind() []MemberState {
	behind := slices.DeleteFunc(o.Own(), func(m MemberState) bool { return !o.BehindTemplate(m) || m.Pod == nil || m.Pod.Deleting })
	slices.SortFunc(behind, func(a, b MemberState) int { return cmp.Compare(a.PodName, b.PodName) })
	return behind
}

// nextBehind returns the member that follows the template next: the leader comes last.
func (o *Observation) nextBehind() (MemberState, bool) {
	behind := o.behind()
	if len(behind) == 0 {
		return MemberState{}, false
	}
	if i := slices.IndexFunc(behind, func(m MemberState) bool { return !m.leader() }); i >= 0 {
		return behind[i], true
	}
	return behind[0], true
}

// handOver moves leadership away from a member that must stop; nil if it does not lead, or is
// alone.
func (o *Observation) handOver(m MemberState) Step {
	if !m.leader() || len(o.Voters()) < 2 {
		return nil
	}
	if successor, ok := o.successor(m); ok {
		return MoveLeader{From: m.PodName, IP: m.Pod.IP, To: successor.PodName, ID: successor.ID}
	}
	return Wait{"for a member that can lead while " + m.PodName + " stops"}
}
