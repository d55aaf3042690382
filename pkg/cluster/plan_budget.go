// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/etcd"

// budgetState is the cluster's PodDisruptionBudget as an observation sees it.
type budgetState struct {
	belonging
	minAvailable int // 0 where there is none
	// written is the number that was written just now and is not written again
	// at once, should somebody undo it; 0 when that is over.
	written int
}

// wantsBudget tells whether evictions are to be limited. While a cluster shrinks
// they are until it has: two voters fewer than three are no smaller loss.
func (o *observation) wantsBudget() bool {
	spec := o.spec
	spec.Size = max(spec.Size, len(o.voters()))
	return spec.HasDisruptionBudget()
}

// minAvailable is how many ready members evictions must leave: a quorum of the
// voters, whichever of the ready ones are left. What is ready without a vote
// raises it by one each: learners, and the pods at the gate, which are the next to
// be added. So it is raised before the membership grows, lowered after it has
// shrunk, and right all the way in between.
func (o *observation) minAvailable() int {
	least := etcd.Quorum(len(o.voters())) + len(o.learners())
	for _, p := range o.planned() {
		if p.atGate {
			least++
		}
	}
	return least
}

// keepBudget comes before the rules that change the membership: what they do next
// rests on a number that fits the membership as it is.
func keepBudget(o *observation) step {
	b := o.budget
	switch {
	case b.putOff || b.leaving:
		return nil
	case !o.wantsBudget():
		if b.owned {
			return deleteBudget{uid: b.uid, why: noBudgetWanted(o)}
		}
		return nil
	case !b.owned:
		return createBudget{minAvailable: o.minAvailable()}
	case b.written == o.minAvailable():
		return nil
	case b.edited != "" || b.minAvailable != o.minAvailable():
		return mendBudget{from: b.minAvailable, to: o.minAvailable(), edited: b.edited}
	}
	return nil
}

func noBudgetWanted(o *observation) string {
	if o.spec.PodDisruptionBudget != nil && !*o.spec.PodDisruptionBudget {
		return "spec.podDisruptionBudget is false"
	}
	return "a cluster of fewer than 3 could never be drained"
}
