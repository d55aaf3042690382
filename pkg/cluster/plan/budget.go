// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// WantsBudget reports whether evictions must be limited. For a shrinking cluster they are,
// until it has shrunk: two voters tolerate no loss either.
func (o *Observation) WantsBudget() bool {
	spec := o.Spec
	spec.Size = max(spec.Size, len(o.Voters()))
	return spec.HasDisruptionBudget()
}

// MinAvailable is how many ready members evictions must leave: a quorum of the voters,
// whichever of the ready ones are left. Each ready pod without a vote raises it by one:
// learners, and pods at the gate, which join next. So it rises before the membership grows,
// falls after it has shrunk, and is right in between. Each voter that has just stopped working
// raises it too: Kubernetes counts the pods of a silent node as ready for 40 seconds. So does the ready pod
// of a removed member that Kubernetes refuses to delete.
func (o *Observation) MinAvailable() int {
	least := o.votersToKeep() + len(o.Learners()) + Count(o.Voters(), o.seemsReady)
	for _, p := range o.Planned() {
		if p.AtGate {
			least++
		}
	}
	least += len(o.ReadyPodsOfOthers) // they have the labels that the budget selects
	for _, p := range o.Pods {
		if p.DeleteRefused && p.Started && p.Ready && !p.Deleting && !o.IsMember(p.Name) {
			least++
		}
	}
	return least
}

// votersToKeep is how many of the voters with a pod evictions must leave. While an import waits for its commit,
// perhaps for days, the former members have no pod that the budget selects, and are a quorum with few others.
// One of them may fail, and one pod may go at a time.
func (o *Observation) votersToKeep() int {
	quorum := etcd.Quorum(len(o.Voters()))
	former := Count(o.FormerVoters(), MemberState.Healthy)
	if !o.Importing() || o.Committed() || former == 0 {
		return quorum
	}
	return min(quorum, max(quorum-former+1, len(o.ownVoters())-1))
}

const (
	// readyAtMost is how long the operator believes that a pod only seems ready. After it,
	// Kubernetes knows as well, or the operator alone can't reach the member.
	readyAtMost = time.Minute
	// readyAtLeast spares a member that restarts two writes of the budget: its readiness probe
	// fails after three seconds.
	readyAtLeast = 5 * time.Second
)

// seemsReady reports whether a voter has stopped working, and Kubernetes does not know it yet.
func (o *Observation) seemsReady(m MemberState) bool {
	down := o.Now.Sub(m.DownSince)
	return o.Quorum && !m.DownSince.IsZero() && down >= readyAtLeast && down < readyAtMost && m.Pod != nil && m.Pod.Ready && !m.Pod.Deleting
}

// KeepBudget comes before the rules that change the membership: they rely on a number that
// fits the current membership.
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
	case b.Written == o.MinAvailable():
		return nil
	case !b.Owned:
		return CreateBudget{MinAvailable: o.MinAvailable()}
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
