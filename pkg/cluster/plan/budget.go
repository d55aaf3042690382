// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/etcd-operator/etcd-operator/pkg/etcd"

// WantsBudget tells whether evictions are to be limited. While a cluster shrinks
// they are until it has: two voters fewer than three are no smaller loss.
func (o *Observation) WantsBudget() bool {
	spec := o.Spec
	spec.Size = max(spec.Size, len(o.Voters()))
	return spec.HasDisruptionBudget()
}

// MinAvailable is how many ready members evictions must leave: a quorum of the
// voters, whichever of the ready ones are left. What is ready without a vote
// raises it by one each: learners, and the pods at the gate, which are the next to
// be added. So it is raised before the membership grows, lowered after it has
// shrunk, and right all the way in between.
func (o *Observation) MinAvailable() int {
	least := etcd.Quorum(len(o.Voters())) + len(o.Learners())
	for _, p := range o.Planned() {
		if p.AtGate {
			least++
		}
	}
	return least
}

// KeepBudget comes before the rules that change the membership: what they do next
// rests on a number that fits the membership as it is.
func KeepBudget(o *Observation) Step {
	b := o.Budget
	switch {
	case b.PutOff || b.Leaving:
		return nil
	case !o.WantsBudget():
		if b.Owned {
			return DeleteBudget{UID: b.UID, why: noBudgetWanted(o)}
		}
		return nil
	case !b.Owned:
		return CreateBudget{MinAvailable: o.MinAvailable()}
	case b.Written == o.MinAvailable():
		return nil
	case b.Edited != "" || b.MinAvailable != o.MinAvailable():
		return UpdateBudget{From: b.MinAvailable, To: o.MinAvailable(), Edited: b.Edited}
	}
	return nil
}

func noBudgetWanted(o *Observation) string {
	if o.Spec.PodDisruptionBudget != nil && !*o.Spec.PodDisruptionBudget {
		return "spec.podDisruptionBudget is false"
	}
	return "a cluster of fewer than 3 could never be drained"
}
