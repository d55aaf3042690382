// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Condition returns a condition as last seen; one that was never written is empty.
func (c *Cluster) Condition(kind v1beta2.ClusterConditionType) v1beta2.ClusterCondition {
	status := c.Status()
	condition := status.Condition(kind)
	condition.Type = kind
	return condition
}

// WaitCondition waits until a condition has a status, and its reason and message contain all
// words.
func (c *Cluster) WaitCondition(within time.Duration, kind v1beta2.ClusterConditionType, status corev1.ConditionStatus, words ...string) {
	c.n.t.Helper()
	Wait(c.n.t, fmt.Sprintf("condition %s=%s with %q", kind, status, words), within, func(context.Context) error {
		condition := c.Condition(kind)
		if condition.Status == status && containsAll(condition.Reason+": "+condition.Message, words) {
			return nil
		}
		return fmt.Errorf("condition %s=%s, reason %q, message %q", kind, condition.Status, condition.Reason, condition.Message)
	})
}

// Observe returns a function that returns, as "reason: message", each text of a condition
// while it was True from now on.
func (c *Cluster) Observe(kind v1beta2.ClusterConditionType) func() []string {
	from := len(c.n.record.statusesOf(c.Name))
	return func() []string {
		var said []string
		for _, status := range c.n.record.statusesOf(c.Name)[from:] {
			for _, condition := range status.Conditions {
				text := condition.Reason + ": " + condition.Message
				if condition.Type == kind && condition.Status == corev1.ConditionTrue && !slices.Contains(said, text) {
					said = append(said, text)
				}
			}
		}
		return said
	}
}
