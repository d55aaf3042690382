// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// statusReason is the Reason whose text is status.reason in a phase; zero if there is none.
// Reasons that need a person come first.
func statusReason(o *plan.Observation, s plan.Step, phase api.ClusterPhase) plan.Reason {
	if failed, ok := s.(plan.MarkFailed); ok {
		return plan.Reason{Detail: failed.Why}
	}
	if _, message := o.Contradiction(); message != "" {
		return plan.Reason{Detail: message}
	}
	if phase == api.ClusterPhaseFailed {
		return plan.Reason{Detail: o.Status.Reason} // it stays as long as the phase
	}
	return cmp.Or(specRefusal(o), plan.CertificatesHold(o), loginRefusal(o), o.AuthHold(), podsRefusal(o), unlabelled(o), importReason(o, s), restoring(o, s), wrongTag(o), imageRefusal(o), standstillReason(o), volumesDeleted(o), strangers(o), objectRefusal(o), undone(o), ignoredImport(o), toleration(o))
}

// specRefusal says which part of the spec the operator does not follow, and why.
func specRefusal(o *plan.Observation) plan.Reason {
	if o.Invalid != "" {
		return plan.Reason{Kind: plan.SpecRefused, Detail: o.Invalid}
	}
	if o.Status.Phase == api.ClusterPhaseRunning && o.Outdated() {
		if err := o.CheckVersion(); err != nil {
			return plan.Reason{Kind: plan.VersionRefused, Detail: err.Error()}
		}
	}
	return plan.Reason{}
}

// toleration says which part of the spec the operator leaves out while the cluster runs on. It
// comes last: a person can look at it when nothing else is wrong.
func toleration(o *plan.Observation) plan.Reason {
	if o.Tolerated == "" {
		return plan.Reason{}
	}
	return plan.Reason{Kind: plan.SpecRefused, Detail: o.Tolerated + ". The operator manages the running cluster without the refused part: correct the spec"}
}

// loginRefusal says why etcd does not let the operator in.
func loginRefusal(o *plan.Observation) plan.Reason {
	if o.LoginRefused == "" {
		return plan.Reason{}
	}
	return plan.Reason{Kind: plan.LoginRefused, Detail: o.LoginRefused}
}

// podsRefusal says why the API server refuses pods of members.
func podsRefusal(o *plan.Observation) plan.Reason {
	if o.Refused.Why == "" {
		return plan.Reason{}
	}
	return plan.Reason{Kind: plan.PodsRefused, Detail: o.Refused.Why}
}

// wrongTag says that the image of the target version holds another one. Without a quorum, that
// is not what a person has to look at.
func wrongTag(o *plan.Observation) plan.Reason {
	if !o.Quorum {
		return plan.Reason{}
	}
	return o.MislabelledTarget()
}

// objectRefusal says why the client Service, the PodDisruptionBudget or a bridge is not as
// specified. The members need none of them.
func objectRefusal(o *plan.Observation) plan.Reason {
	switch {
	case o.ClientService.Refused != "":
		return plan.Reason{Kind: plan.ServiceRefused, Detail: o.ClientService.Refused}
	case o.Budget.Refused != "" && o.WantsBudget():
		return plan.Reason{Kind: plan.BudgetRefused, Detail: o.Budget.Refused}
	}
	for _, b := range o.Bridges {
		if b.Refused != "" {
			return plan.Reason{Kind: plan.BridgeHeld, Detail: b.Refused}
		}
	}
	return plan.Reason{}
}

// imageRefusal says why the API server refuses to change the image of a pod.
func imageRefusal(o *plan.Observation) plan.Reason {
	if o.ImageRefused == "" {
		return plan.Reason{}
	}
	return plan.Reason{Kind: plan.WriteUndone, Detail: o.ImageRefused}
}

// undone says what admission undoes, or what is left of former members. The cluster serves meanwhile.
func undone(o *plan.Observation) plan.Reason {
	if o.WriteUndone == "" {
		return plan.Reason{}
	}
	return plan.Reason{Kind: plan.WriteUndone, Detail: o.WriteUndone}
}

// standstillReason says what the operator has waited for too long.
func standstillReason(o *plan.Observation) plan.Reason {
	if o.Standstill == "" {
		return plan.Reason{}
	}
	return plan.Reason{Kind: plan.Standstill, Detail: o.Standstill}
}
