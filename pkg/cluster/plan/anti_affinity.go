// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
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
	if len(planned) != 1 || planned[0].Crowded == 0 || o.Now.Sub(planned[0].Created) < roomPatience {
		return nil
	}
	if planned[0].Crowded < o.memberNodes() || len(o.Voters()) < 3 || !o.quorumWithout(next) {
		return nil
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	return next.remove(false, "the member that replaces it has no node beside it")
}

// WayToRoom says what happens or what to do if a new member finds no node beside the others.
func (o *Observation) WayToRoom(p manifest.PodState) string {
	if p.Crowded >= o.memberNodes() && len(o.Voters()) >= 3 {
		return "a member makes room for it when all others are healthy"
	}
	return "add a node that it can run on, or let members share a node (spec.pod.antiAffinity, spec.pod.affinity)"
}
