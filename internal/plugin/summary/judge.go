// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// judge returns the state of a cluster, and why it is not SERVING.
func judge(c *observe.Cluster, s *Summary) (State, []string) {
	var down, degraded []string
	alarms := alarmsOf(c, s)
	switch {
	case s.Voters == 0:
		down = append(down, notServing(c))
	case s.servesOthers(c):
		degraded = append(degraded, fmt.Sprintf("the plugin reaches %d of %d voters, but a quorum confirms reads", s.Healthy, s.Voters))
	case s.Healthy < s.Voters/2+1:
		down = append(down, fmt.Sprintf("%d of %d voters are healthy: a quorum is %d", s.Healthy, s.Voters, s.Voters/2+1))
	}
	if slices.Contains(alarms, etcd.AlarmCorrupt) {
		down = append(down, "alarm CORRUPT: the members' data differ, etcd refuses writes, and reads may differ between members")
	}
	if slices.Contains(alarms, etcd.AlarmNoSpace) {
		down = append(down, "alarm NOSPACE: a database is full, etcd refuses writes")
	}
	available := c.Condition(api.ClusterConditionAvailable)
	if s.Source == FromOperator && len(down) == 0 && available != nil && available.Status == corev1.ConditionFalse {
		down = append(down, available.Reason+": "+available.Message)
	}
	if Contradicted(c) && s.Source != FromOperator {
		degraded = append(degraded, available.Reason+": "+available.Message)
	}
	if c.Object.Status.Phase == api.ClusterPhaseFailed {
		down = append(down, "phase Failed: "+c.Object.Status.Reason)
	}
	for _, m := range s.Members {
		if !m.Healthy {
			degraded = append(degraded, m.Name+": "+problemOf(m))
		}
	}
	if s.Voters > 0 && s.Voters != s.Size {
		degraded = append(degraded, fmt.Sprintf("%d voters, and the spec asks for %d", s.Voters, s.Size))
	}
	if c.Object.DeletionTimestamp != nil {
		degraded = append(degraded, "the EtcdCluster is being deleted")
	}
	for _, cert := range Certificates(c) {
		if cert.Expired {
			degraded = append(degraded, cert.Use+" certificate has expired")
		}
	}
	switch {
	case len(down) > 0:
		return Down, append(down, degraded...)
	case len(degraded) > 0:
		return Degraded, degraded
	default:
		return Serving, nil
	}
}

// Contradicted reports whether the members contradict the operator's record. The operator
// then changes nothing, because data may be lost.
func Contradicted(c *observe.Cluster) bool {
	available := c.Condition(api.ClusterConditionAvailable)
	return available != nil && available.Status == corev1.ConditionFalse &&
		slices.Contains([]string{"Members forgotten", "Cluster ID changed", "Data went back"}, available.Reason)
}

// notServing is why a cluster without members has none.
func notServing(c *observe.Cluster) string {
	switch {
	case c.Object.Status.Reason != "":
		return c.Object.Status.Reason
	case c.Object.Status.Phase == api.ClusterPhaseNone:
		return "no operator has seen the EtcdCluster: is the etcd operator installed, and does it follow this namespace?"
	case len(c.Pods) == 0:
		return "it has no pods"
	default:
		return "no member answers"
	}
}

func problemOf(m Member) string {
	if m.Problem != "" {
		return m.Problem
	}
	return string(m.Role)
}

// alarmsOf lists the kinds of alarms that any member knows.
func alarmsOf(c *observe.Cluster, s *Summary) []string {
	var kinds []string
	for _, a := range c.Answers {
		if a.Err == nil {
			for _, alarm := range a.Status.Alarms {
				kinds = append(kinds, alarm.Type)
			}
		}
	}
	for _, m := range s.Members {
		kinds = append(kinds, m.Alarms...)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// activity is what the operator does now.
func activity(c *observe.Cluster) []string {
	var list []string
	shown := []api.ClusterConditionType{
		api.ClusterConditionRecovering, api.ClusterConditionScaling, api.ClusterConditionUpgrading, api.ClusterConditionUpdating,
	}
	for _, condition := range c.Object.Status.Conditions {
		if condition.Status != corev1.ConditionTrue || !slices.Contains(shown, condition.Type) {
			continue
		}
		text := string(condition.Type)
		if condition.Message != "" {
			text += ": " + condition.Message
		}
		list = append(list, text)
	}
	if r := c.Object.Status.Recovery; r != nil {
		for _, w := range r.Ways {
			list = append(list, fmt.Sprintf("Way out %s: %s", w.Way, w.Message))
		}
		if r.Automatic != nil {
			list = append(list, Automatic(r.Automatic))
		}
		if r.Choice != nil {
			list = append(list, Chosen(r.Choice))
		}
	}
	if r := c.Restore; r != nil && !r.Status.Succeeded {
		list = append(list, fmt.Sprintf("Restore %s: %s", r.Status.Phase, r.Status.Reason))
	}
	return list
}

// Chosen says how far a recovery is that somebody has chosen.
func Chosen(c *api.RecoveryChoice) string {
	text := fmt.Sprintf("Recovery %s: %s: %s", c.Value, c.Phase, c.Reason)
	if c.Message != "" {
		text += ". What it restores and loses: " + c.Message
	}
	return text
}

// Automatic says what the automatic recovery is about to do.
func Automatic(a *api.AutomaticRecovery) string { return "Automatic recovery: " + a.Message }
