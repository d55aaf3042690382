// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// roomPatience is how long a replacement may find no node beside the existing members.
const roomPatience = time.Minute

// makeRoom removes a member before its replacement has joined, if anti-affinity keeps the two
// from running together. The replacement must be able to use the member's node. The remaining
// members must be more than one, and a quorum.
func (o *Observation) makeRoom(next MemberState) Step {
	planned := o.Planned()
	if len(planned) != 1 || !o.needsRoom(planned[0]) || len(o.Voters()) < 3 || !o.quorumWithout(next) || o.dataDiffers() {
		return nil
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	return next.remove(false, "the member that replaces it has no node beside it")
}

// makeRoomForMember does the same where the operator adds a member before it creates its pod.
// The operator then removes the new member, which knows the former membership, and adds another
// one.
func (o *Observation) makeRoomForMember(m MemberState) Step {
	others := slices.DeleteFunc(o.Voters(), func(v MemberState) bool { return v.ID == m.ID })
	if o.Gate || o.UpdateRefused != "" || len(o.Learners()) > 1 || len(others) < 3 || slices.ContainsFunc(others, MemberState.Foreign) {
		return nil
	}
	if m.Joined() || m.Pod == nil || m.Pod.Deleting || !o.needsRoom(*m.Pod) || o.unsettledOf(others) != nil || o.returning() != "" {
		return nil
	}
	next, ok := o.nextBehind()
	if !ok || next.ID == m.ID || !o.needsReplacing(next) || !o.quorumWithout(next) || o.dataDiffers() {
		return nil
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	return next.remove(false, "the member that replaces it has no node beside it")
}

// needsRoom reports whether a pod has long found no node because the members use all nodes
// that it could use.
func (o *Observation) needsRoom(p manifest.PodState) bool {
	return p.Crowded > 0 && p.Crowded >= o.memberNodes() && o.Now.Sub(p.Created) >= roomPatience
}

// WayToRoom says what happens or what to do if a new member finds no node beside the others.
func (o *Observation) WayToRoom(p manifest.PodState) string {
	others := slices.DeleteFunc(o.Voters(), func(v MemberState) bool { return v.PodName == p.Name })
	if p.Crowded >= o.memberNodes() && len(others) >= 3 {
		return "a member makes room for it when all others are healthy"
	}
	return "add a node that it can run on, or let members share a node (spec.pod.antiAffinity, spec.pod.affinity)"
}
