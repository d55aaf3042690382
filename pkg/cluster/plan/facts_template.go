// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// size is how many members there may be: the spec's, and one more during the replacement of a
// member that does not follow the template.
func (o *Observation) size() int {
	if slices.ContainsFunc(o.Own(), func(m MemberState) bool { return !m.Learner && o.needsReplacing(m) }) {
		return o.Spec.Size + 1
	}
	return o.Spec.Size
}

// podOutdated reports whether another template than the spec's built a pod. A pod without a
// recorded template counts as current.
func (o *Observation) podOutdated(p manifest.PodState) bool {
	if p.Legacy && o.CheckVersion() == nil && o.imageOutdated(p) {
		return true // the operator can't change it in place
	}
	return o.Template.Pod != "" && p.Template.Pod != "" && p.Template.Pod != o.Template.Pod
}

// imageOutdated reports whether a pod from v0.9.4 has another image than the spec asks for now. A
// pod that the operator has not adopted yet only counts by its version.
func (o *Observation) imageOutdated(p manifest.PodState) bool {
	target := o.Spec.EffectiveVersion()
	return p.Version != target || p.ImageOnRecord && !has(p, manifest.Image(&o.Spec, target, p.LiteralTag))
}

// volumeOutdated reports whether a member keeps its data differently than the spec says.
func (o *Observation) volumeOutdated(m MemberState) bool {
	has := ""
	switch {
	case m.Volume != nil:
		has = m.Volume.Template
	case m.Pod != nil:
		has = m.Pod.Template.Volume
	}
	switch {
	case o.Template.Volume == "" || m.Pod == nil && m.Volume == nil:
		return false
	case has == "": // not made by this operator
		return (m.Volume != nil) != o.Spec.Persistent()
	}
	return has != o.Template.Volume
}

// awaitsOldVolume reports whether a seed waits for a volume that an earlier spec asks for, and that has
// never existed. An edit may be what it takes, for example of the StorageClass, and no claim follows one.
func (o *Observation) awaitsOldVolume(seed manifest.PodState) bool {
	v := o.Volume(seed.Name)
	return v != nil && v.Unbound && !v.Deleting && seed.Claimed && !seed.Scheduled && !seed.Started &&
		o.volumeOutdated(MemberState{Pod: &seed, Volume: v})
}

// BehindTemplate reports whether a member has not followed an edit of the template.
func (o *Observation) BehindTemplate(m MemberState) bool {
	return m.Pod != nil && o.podOutdated(*m.Pod) || o.volumeOutdated(m)
}

// TriesEdit reports whether a member follows an edit that others have yet to follow, and has not served since:
// the edit may be at fault. A pod whose image changes in place keeps the note that its member has served, and
// the same version does not show the change. There, an etcd counts that crashes. A member may be well that the
// operator can't ask, and one that receives a copy of the database will be.
func (o *Observation) TriesEdit(m MemberState) bool {
	if m.Pod == nil || m.Answers() || o.BehindTemplate(m) || o.BehindImage(m) {
		return false
	}
	if m.DistrustsOperator() || m.Unreached() || o.catchesUp(m) {
		return false
	}
	unserved := m.neverServed()
	changed := manifest.SameVersion(m.Pod.Previous, m.Pod.Version) && o.crashes(m)
	return slices.ContainsFunc(o.Own(), func(other MemberState) bool {
		return unserved && o.BehindTemplate(other) || (unserved || changed) && o.BehindImage(other)
	})
}

// awaitsRepair reports whether a member's pod is about to follow an edit that may repair it, such as one that
// takes another back: as soon as it is deleted, or the kubelet pauses before the next start of etcd.
func (o *Observation) awaitsRepair(m MemberState) bool {
	if m.Pod.Deleting {
		return m.KeepsData()
	}
	if m.Answers() || m.Pod.Restarts == 0 || !m.Pod.Crashing && o.Now.Sub(m.Pod.Ended) >= WedgeDeadline {
		return false
	}
	return m.KeepsData() && o.podOutdated(*m.Pod) && !o.volumeOutdated(m) || o.BehindImage(m)
}

// mayRecoverFromEdit reports whether a restart with the present template may bring back a silent member that keeps
// its data: etcd does not come up, or runs and has never served from this pod, such as one that does not reach its
// peers. Or its container can't be made. The kubelet does not pause there, so no other rule recreates the pod.
func (o *Observation) mayRecoverFromEdit(m MemberState) bool {
	return m.KeepsData() && o.podOutdated(*m.Pod) && !o.volumeOutdated(m) && !m.Answers() &&
		(m.neverServed() || m.Pod.StartingUp || !m.Pod.Running && !m.Pod.Crashing) &&
		!m.Pod.Deleting
}

// neverServed reports whether a member with a pod has not answered from it yet, as far as the operator has noted.
func (m MemberState) neverServed() bool { return m.Pod.Guarded && !m.Pod.Noted }

// crashes reports whether etcd of a silent member ends again and again, or does not come up. The kubelet pauses
// for five minutes at most, so this holds between an end and the next one as well.
func (o *Observation) crashes(m MemberState) bool {
	return !m.Pod.Running || m.Pod.StartingUp || o.Now.Sub(m.Pod.Ended) < WedgeDeadline
}

// needsReplacing reports whether only a replacement can follow the template: the member would
// lose its data with its pod, or keeps it in the wrong way.
func (o *Observation) needsReplacing(m MemberState) bool {
	return o.volumeOutdated(m) || m.Pod != nil && o.podOutdated(*m.Pod) && !m.KeepsData()
}

// Surge reports whether there are more members than the spec's size because the operator
// replaces one.
func (o *Observation) Surge() bool {
	return len(o.Own()) == o.size() && o.size() > o.Spec.Size
}
