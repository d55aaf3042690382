// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/readiness"
)

// setReady sets the conditions Ready, Reconciling and Stalled. It comes last, because they
// follow from the rest of the status.
func setReady(st *api.ClusterStatus, o *plan.Observation, s plan.Step, why plan.Reason) {
	now := o.Now.UTC().Format(time.RFC3339)
	in := readyInput(st, o, s, why)
	if o.Electing() && !in.Edited && in.Blocked == "" && conditionIsTrue(st, api.ClusterConditionReady) {
		return // an election takes about a second, and Available stays True as well
	}
	for _, c := range in.Of().Conditions() {
		setCondition(st, now, api.ClusterCondition{
			Type: api.ClusterConditionType(c.Type), Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		})
	}
}

func readyInput(st *api.ClusterStatus, o *plan.Observation, s plan.Step, why plan.Reason) readiness.Cluster {
	idle, idles := s.(plan.Idle)
	_, waiting, _ := updating(o)
	in := readiness.Cluster{
		Status:    st,
		Size:      o.Spec.Size,
		Waiting:   standstillReason(o).String(),
		Behind:    waiting != "" || o.Outdated(),
		Restoring: startsOnBackup(st, o),
		Importing: importing(st, o),
		Settled:   idles && idle.Why.Kind == plan.AsSpecified,
		Edited:    o.Status.ObservedGeneration != st.ObservedGeneration,
	}
	in.Blocked, in.BlockedBy = blockedBy(st, o, s, why)
	for _, m := range o.Own() {
		if !m.Healthy() {
			in.Sick = append(in.Sick, m.Title()+": "+problem(m, o))
		}
	}
	in.Exhausted = exhausted(o)
	return in
}

// startsOnBackup reports whether the first member starts from a backup and does not serve yet.
func startsOnBackup(st *api.ClusterStatus, o *plan.Observation) bool {
	return o.Source != nil && (st.Phase == api.ClusterPhaseNone || st.Phase == api.ClusterPhaseCreating)
}

// blockedBy returns the CamelCase reason why only a person can help, with an explanation;
// "" if there is none.
func blockedBy(st *api.ClusterStatus, o *plan.Observation, s plan.Step, why plan.Reason) (reason, message string) {
	if reason, message := o.Contradiction(); reason != "" {
		return readiness.CamelCase(reason), message
	}
	switch s.(type) {
	case plan.MarkFailed, plan.Idle:
		if st.Phase == api.ClusterPhaseFailed {
			return "AllMembersLost", cmp.Or(st.Reason, plan.NoMembersLeft)
		}
	}
	switch why.Kind {
	case plan.SpecRefused:
		return "SpecRefused", why.String()
	case plan.VersionRefused:
		return "VersionRefused", why.String()
	case plan.StrangePods:
		return "StrangePods", why.String()
	case plan.CertificatesHeld, plan.MembersHeld:
		return "CertificatesUnusable", why.String()
	case plan.LoginRefused:
		return "LoginRefused", why.String()
	case plan.AuthenticationHeld:
		return "AuthenticationHeld", why.String()
	case plan.ServiceRefused:
		return "ServiceRefused", why.String()
	case plan.BudgetRefused:
		return "BudgetRefused", why.String()
	case plan.BridgeHeld:
		return "BridgeHeld", why.String()
	case plan.WriteUndone:
		return "WriteUndone", why.String()
	case plan.PodsRefused:
		return "PodsRefused", why.String()
	case plan.PodsUnlabelled:
		return "PodsUnlabelled", why.String()
	case plan.VolumesDeleted:
		return "VolumesDeleted", why.String()
	case plan.RestoreHeld:
		return "RestoreHeld", why.String()
	case plan.ImportHeld:
		return "ImportHeld", why.String()
	case plan.WrongImage:
		return "WrongImage", why.String()
	}
	if o.Quorum {
		if reason, message := blocked(o); reason != "" {
			return readiness.CamelCase(reason), message
		}
	} else if _, reason, message, blind := withoutSight(o); blind {
		return readiness.CamelCase(reason), message
	}
	if c := st.Condition(api.ClusterConditionUpdating); c.Status == corev1.ConditionFalse {
		return readiness.CamelCase(c.Reason), c.Message
	}
	return "", ""
}

// exhausted reports whether the operator has waited in vain for so long that a person should
// look. A member that receives a copy of the database makes progress, however long it takes.
func exhausted(o *plan.Observation) bool {
	for _, m := range o.Own() {
		if m.Copies(o.Now) {
			return false
		}
	}
	if o.Source != nil && len(o.Members) == 0 {
		for _, p := range o.Pods {
			if p.Problem == "" {
				return false // it may fetch a large backup
			}
		}
	}
	if o.Standstill != "" && !o.StandstillSince.IsZero() && o.Now.Sub(o.StandstillSince) >= readiness.Patience {
		return true
	}
	for _, m := range o.Own() {
		// The operator replaces such a member after WedgeDeadline, if it can.
		if o.Quorum && !m.Healthy() && m.SilentFor(o.Now) >= plan.WedgeDeadline+readiness.Patience {
			return true
		}
	}
	return false
}

// selector finds the pods of a cluster. The scale subresource shows it.
func selector(o *plan.Observation) string {
	return labels.SelectorFromSet(o.Names.Labels()).String()
}
