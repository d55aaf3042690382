// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

func setConditions(st *api.ClusterStatus, o *plan.Observation, s plan.Step) {
	now := o.Now.UTC().Format(time.RFC3339)
	set := func(t api.ClusterConditionType, status corev1.ConditionStatus, reason, message string) {
		setCondition(st, now, api.ClusterCondition{Type: t, Status: status, Reason: reason, Message: message})
	}
	lost, _ := o.Contradiction()
	if lost != "" || !o.Electing() || !conditionIsTrue(st, api.ClusterConditionAvailable) {
		available, reason, message := availability(o, st.Phase)
		set(api.ClusterConditionAvailable, available, reason, message)
	}
	setCertificates(st, o, set)
	if o.Spec.Paused {
		return // its progress is unknown
	}

	setUpdating(st, o, set)
	voters := plan.Count(o.Own(), func(m plan.MemberState) bool { return !m.Learner })
	dead := deadMembers(o, s)
	recovering := conditionIsTrue(st, api.ClusterConditionRecovering)
	switch {
	case st.Phase == api.ClusterPhaseFailed: // the operator replaces no member
		clearCondition(st, api.ClusterConditionRecovering)
		clearCondition(st, api.ClusterConditionScaling)
	case o.Quorum && dead == "" && voters == o.Spec.Size && len(o.Learners()) == 0:
		clearCondition(st, api.ClusterConditionRecovering)
		clearCondition(st, api.ClusterConditionScaling)
	case dead != "":
		set(api.ClusterConditionRecovering, corev1.ConditionTrue, "Replacing dead member", "The dead member "+dead+" is being replaced")
	case recovering || !o.Quorum || voters == o.Spec.Size || o.Surge() && voters > o.Spec.Size:
		// The condition stays until the size is reached.
	case voters < o.Spec.Size:
		set(api.ClusterConditionScaling, corev1.ConditionTrue, "Scaling up", scalingMessage(voters, o.Spec.Size))
	default:
		set(api.ClusterConditionScaling, corev1.ConditionTrue, "Scaling down", scalingMessage(voters, o.Spec.Size))
	}

	switch {
	case st.TargetVersion != "":
		set(api.ClusterConditionUpgrading, corev1.ConditionTrue, "Cluster upgrading", "upgrading to "+st.TargetVersion)
	case !o.MislabelledTarget().IsZero():
		set(api.ClusterConditionUpgrading, corev1.ConditionFalse, "Upgrade stopped", o.MislabelledTarget().String())
	case st.Phase == api.ClusterPhaseRunning && !specRefusal(o).IsZero() && o.Invalid == "":
		set(api.ClusterConditionUpgrading, corev1.ConditionFalse, "Upgrade refused", specRefusal(o).String())
	default:
		clearCondition(st, api.ClusterConditionUpgrading)
	}
}

func scalingMessage(current, desired int) string {
	return fmt.Sprintf("Current cluster size: %d, desired cluster size: %d", current, desired)
}

// deadMembers names the lost voters, and those that the operator removes because of a loss.
func deadMembers(o *plan.Observation, s plan.Step) string {
	if r, ok := s.(plan.RemoveMember); ok && r.Dead {
		return r.Name
	}
	if !o.Quorum {
		return ""
	}
	var dead []string
	for _, m := range o.Own() {
		if !m.Learner && m.Lost(o.Now) {
			dead = append(dead, m.PodName)
		}
	}
	return strings.Join(dead, ", ")
}

func conditionIsTrue(st *api.ClusterStatus, t api.ClusterConditionType) bool {
	return st.Condition(t).Status == corev1.ConditionTrue
}

// setCondition writes a condition if it says something new.
func setCondition(st *api.ClusterStatus, now string, c api.ClusterCondition) {
	c.LastUpdateTime, c.LastTransitionTime = now, now
	i := slices.IndexFunc(st.Conditions, func(old api.ClusterCondition) bool { return old.Type == c.Type })
	if i < 0 {
		st.Conditions = append(st.Conditions, c)
		return
	}
	old := st.Conditions[i]
	if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	st.Conditions[i] = c
}

func clearCondition(st *api.ClusterStatus, t api.ClusterConditionType) {
	st.Conditions = slices.DeleteFunc(st.Conditions, func(c api.ClusterCondition) bool { return c.Type == t })
}
