// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// size is how many members there may be: the spec's, and one more while a member
// is to be replaced by another that follows the template.
func (o *Observation) size() int {
	if slices.ContainsFunc(o.Own(), func(m MemberState) bool { return !m.Learner && o.needsReplacing(m) }) {
		return o.Spec.Size + 1
	}
	return o.Spec.Size
}

// podOutdated tells whether a pod was made by another template than the spec's. A
// pod that does not tell is taken as it is.
func (o *Observation) podOutdated(p manifest.PodState) bool {
	if p.Legacy && p.Version != o.Spec.EffectiveVersion() && o.CheckVersion() == nil {
		return true // it can't be upgraded in place
	}
	return o.Template.Pod != "" && p.Template.Pod != "" && p.Template.Pod != o.Template.Pod
}

// volumeOutdated tells whether a member's data is kept in another way than the
// spec says.
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
	case has == "": // not of this operator's making
		return (m.Volume != nil) != o.Spec.Persistent()
	}
	return has != o.Template.Volume
}

// BehindTemplate tells whether a member has to follow an edit of the template.
func (o *Observation) BehindTemplate(m MemberState) bool {
	return m.Pod != nil && o.podOutdated(*m.Pod) || o.volumeOutdated(m)
}

// needsReplacing tells whether a member can follow the template only by another
// in its place: its data would be lost with its pod, or is kept in the wrong way.
func (o *Observation) needsReplacing(m MemberState) bool {
	return o.volumeOutdated(m) || m.Pod != nil && o.podOutdated(*m.Pod) && !m.KeepsData()
}

// Surge tells whether the members beyond the spec's size are there because one is
// being replaced.
func (o *Observation) Surge() bool {
	return len(o.Own()) == o.size() && o.size() > o.Spec.Size
}
