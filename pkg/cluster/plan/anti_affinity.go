// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// roomPatience is how long a member that is to replace another may find no node beside
// the members that are there.
const roomPatience = time.Minute

// makeRoom removes a member that is to be replaced before the other has joined, where
// anti-affinity keeps the two from being there together. Its node must be one that the
// other could have, and the rest more than one member and a quorum.
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

// WayToRoom says what happens or can be done where a new member finds no node beside the
// others.
func (o *Observation) WayToRoom(p manifest.PodState) string {
	if p.Crowded >= o.memberNodes() && len(o.Voters()) >= 3 {
		return "a member makes room for it when all others are healthy"
	}
	return "add a node that it can run on, or let members share a node (spec.pod.antiAffinity, spec.pod.affinity)"
}
