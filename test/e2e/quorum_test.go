//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// Without volumes, a lost quorum means lost data. The operator reports it and leaves the
// remaining members alone: an empty cluster in their place would look healthy.
func TestLostQuorumIsToldAndNothingIsWiped(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	cluster.Put("kept", "yes")
	pods := cluster.Pods()
	survivor := pods[2]
	seeds := countSeeds(cluster)
	cluster.LoseMembers(pods[:2]...)
	waitEnded(t, pods[0])
	waitEnded(t, pods[1])
	// The snapshot of the pods may be older.
	harness.Wait(t, "the quorum is lost for good", harness.Settle, func(context.Context) error {
		c := cluster.Condition(v1beta2.ClusterConditionAvailable)
		since, err := time.Parse(time.RFC3339, c.LastTransitionTime)
		if err == nil && (c.Status != corev1.ConditionFalse || c.Reason != "Quorum lost" || time.Since(since) < 5*time.Second) {
			err = fmt.Errorf("condition Available is %+v", c)
		}
		return err
	})

	reader := cluster.Reader(survivor)
	harness.Holds(t, "the survivor is left alone", 25*time.Second, func(ctx context.Context) error {
		if got := seeds(); len(got) > 0 {
			return fmt.Errorf("pods %v start a new cluster", got)
		}
		if !slices.ContainsFunc(cluster.Pods(), func(p *corev1.Pod) bool { return p.UID == survivor.UID && p.DeletionTimestamp == nil }) {
			return fmt.Errorf("pod %s is gone", survivor.Name)
		}
		if c := cluster.Condition(v1beta2.ClusterConditionAvailable); c.Status != corev1.ConditionFalse || c.Reason == "" || c.Message == "" {
			return fmt.Errorf("condition Available is %+v", c)
		}
		snapshot, err := reader.Read(ctx, "kept")
		if err != nil {
			return err
		}
		if snapshot.KVs["kept"].Value != "yes" {
			return fmt.Errorf("the survivor holds %v", snapshot.KVs)
		}
		return nil
	})
}

func TestAllMembersLostIsToldAndNoEmptyClusterIsMade(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	seeds := countSeeds(cluster)
	cluster.LoseMembers(cluster.Pods()...)
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	harness.Wait(t, "phase Failed with a reason", harness.Settle, func(context.Context) error {
		if s := cluster.Status(); s.Phase != v1beta2.ClusterPhaseFailed || s.Reason == "" {
			return fmt.Errorf("phase %q, reason %q", s.Phase, s.Reason)
		}
		return nil
	})
	harness.Holds(t, "no new cluster is made", 20*time.Second, func(context.Context) error {
		if got := seeds(); len(got) > 0 {
			return fmt.Errorf("pods %v start a new cluster", got)
		}
		return nil
	})
}

// countSeeds returns the pods from now on that start a new cluster.
func countSeeds(cluster *harness.Cluster) func() []string {
	known := map[string]bool{}
	for _, pod := range cluster.Pods() {
		known[pod.Name] = true
	}
	return func() []string {
		var seeds []string
		for _, pod := range cluster.Pods() {
			if !known[pod.Name] && slices.Contains(pod.Spec.Containers[0].Command, "--initial-cluster-state=new") {
				seeds = append(seeds, pod.Name)
			}
		}
		return seeds
	}
}
