// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// size is how many members there may be: the spec's, and one more while a member
// is to be replaced by another that follows the template.
func (o *observation) size() int {
	if slices.ContainsFunc(o.own(), func(m memberState) bool { return !m.Learner && o.needsReplacing(m) }) {
		return o.spec.Size + 1
	}
	return o.spec.Size
}

// recycleBrokenPod makes a pod again that doesn't run and follows an older
// template than the spec's. It needs no quorum: such a pod serves nothing, its
// data is on a volume, and the template may be what took the quorum.
func recycleBrokenPod(o *observation) step {
	if o.status.Phase != api.ClusterPhaseRunning && o.status.Phase != api.ClusterPhaseFailed || o.updateRefused != "" {
		return nil
	}
	for _, p := range o.pods {
		v := o.volume(p.name)
		if v != nil && !v.deleting && o.podOutdated(p) && !p.running && !p.deleting && p.problem != "" {
			return p.recycle("it does not run: " + p.problem)
		}
	}
	return nil
}

// recycle is the step that makes a pod again by the spec's template, on its volume.
func (p podState) recycle(why string) step {
	return recyclePod{name: p.name, uid: p.uid, version: p.version, why: why}
}

// updateMetadata brings labels and annotations of running pods up to date, and
// records on volumes which etcd runs on them.
func updateMetadata(o *observation) step {
	for _, p := range o.pods {
		if p.metadataOutdated && !p.deleting && !p.finished {
			return setMetadata{pod: p.name, uid: p.uid, template: o.template}
		}
	}
	for _, m := range o.own() {
		if m.volume != nil && !m.volume.deleting && !m.volume.putOff && m.status != nil && m.volume.version != o.dataVersion(m) {
			return setVolumeVersion{name: m.volume.name, uid: m.volume.uid, version: o.dataVersion(m)}
		}
	}
	return nil
}

// updateOneMember lets one member follow an edit of the template. One that keeps
// its data gets a new pod on its volume; in the place of another a new member
// joins first. It goes on to the next only when all members are healthy and
// caught up; the leader comes last, and hands over before.
func updateOneMember(o *observation) step {
	own := o.own()
	slices.SortFunc(own, func(a, b memberState) int { return cmp.Compare(a.name, b.name) })
	behind := slices.DeleteFunc(own, func(m memberState) bool { return !o.behindTemplate(m) || m.pod == nil || m.pod.deleting })
	if len(behind) == 0 {
		return nil
	}
	for _, m := range behind {
		if !m.healthy() && !m.pod.running && m.pod.problem != "" && o.needsReplacing(m) && o.quorumWithout(m) {
			return m.remove(true, "it does not run, and the spec has changed since its pod was made")
		}
	}
	if o.updateRefused != "" {
		return nil
	}
	if why := cmp.Or(o.unsettled(), o.short()); why != "" {
		return wait{why}
	}
	next := behind[0]
	if i := slices.IndexFunc(behind, func(m memberState) bool { return !m.leader() }); i >= 0 {
		next = behind[i]
	}
	if o.needsReplacing(next) {
		if len(o.planned()) > 0 {
			return o.makeRoom(next)
		}
		why := next.name + " is to be replaced by a member that follows the spec"
		if !o.gate {
			return o.add(o.newName())
		}
		return createPods{pods: o.joinPods(nil, 1, o.joinVersion()), why: why}
	}
	voters := o.voters()
	if slices.ContainsFunc(voters, memberState.foreign) && count(voters, memberState.healthy)-1 < etcd.Quorum(len(voters)) {
		return idle{"members that the operator did not make may be down: with one more that restarts the quorum could be lost"}
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	return next.pod.recycle("the spec has changed since it was made")
}

// handOver moves leadership away from a member that is to stop; nil if it does
// not lead, or is alone.
func (o *observation) handOver(m memberState) step {
	if !m.leader() || len(o.voters()) < 2 {
		return nil
	}
	if heir, ok := o.heir(m); ok {
		return moveLeader{from: m.name, ip: m.pod.ip, to: heir.name, id: heir.ID}
	}
	return wait{"for a member that can lead while " + m.name + " stops"}
}
