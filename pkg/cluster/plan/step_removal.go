// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/etcd-operator/etcd-operator/pkg/manifest"

// removePod returns the step that deletes the pod.
func removePod(p manifest.PodState, why string) Step {
	return DeletePod{Name: p.Name, UID: p.UID, Why: why}
}

// removeSeed returns the step that deletes the pod of a seed that has not served, according to
// the record.
func removeSeed(p manifest.PodState, why string) Step {
	return DeletePod{Name: p.Name, UID: p.UID, Creating: true, Why: why}
}

// remove returns the step that removes a member.
func (m MemberState) remove(dead bool, why string) RemoveMember {
	s := RemoveMember{ID: m.ID, Name: m.PodName, Volume: m.Volume != nil, Dead: dead, Why: because(why)}
	if m.Pod != nil {
		s.Pod = m.Pod.UID
	}
	return s
}

// removeWithoutPod returns the step that removes a member because its pod is gone.
func (m MemberState) removeWithoutPod(dead bool) RemoveMember {
	s := m.remove(dead, "")
	s.Why = Reason{Kind: PodGone}
	return s
}

// recycle returns the step that recreates a pod by the spec's template, on its volume.
func recycle(p manifest.PodState, why string) Step {
	return RecyclePod{Name: p.Name, UID: p.UID, Version: p.Version, Why: why}
}
