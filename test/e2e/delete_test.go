//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// leavesNothing deletes a cluster, and waits until nothing is left of it.
func leavesNothing(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) {
	t.Helper()
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
	harness.Wait(t, "no endpoint slice, volume claim or disruption budget left", harness.Settle, func(ctx context.Context) error {
		owned := metav1.ListOptions{LabelSelector: "etcd_cluster=" + cluster.Name}
		slices, err := n.Kube.DiscoveryV1().EndpointSlices(n.Name).List(ctx, owned)
		if err != nil {
			return err
		}
		claims, err := n.Kube.CoreV1().PersistentVolumeClaims(n.Name).List(ctx, owned)
		if err != nil {
			return err
		}
		budgets, err := n.Kube.PolicyV1().PodDisruptionBudgets(n.Name).List(ctx, owned)
		if err != nil {
			return err
		}
		if len(slices.Items)+len(claims.Items)+len(budgets.Items) > 0 {
			return fmt.Errorf("%d endpoint slices, %d claims, %d budgets", len(slices.Items), len(claims.Items), len(budgets.Items))
		}
		return nil
	})
}

func TestDeleteWhileCreating(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	harness.Wait(t, "first pod", harness.Settle, func(context.Context) error {
		if len(cluster.Pods()) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
}

// A cluster that is recreated under its name, while the old pods still terminate, is another
// cluster: without the old data, pods and Services. Nothing is left of either.
func TestDeleteLeavesNothing(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	old := n.Create(3, "")
	before := old.WaitSettled()
	old.Put("old", "yes")
	pods := old.Pods()
	service := n.Service(old.Name + "-client").UID
	old.Delete()
	cluster := n.Create(3, "")
	after := cluster.WaitSettled(pods...)
	if before[0].ClusterID == after[0].ClusterID {
		t.Errorf("the new cluster has the ID %x of the old one", after[0].ClusterID)
	}
	harness.Wait(t, "a client service of its own", harness.Settle, func(context.Context) error {
		now := n.Service(cluster.Name + "-client")
		if now == nil || now.UID == service || !ownedBy(now.OwnerReferences, cluster.Object()) {
			return fmt.Errorf("service is %v", now)
		}
		return nil
	})
	if got := cluster.Get("old"); got != "" {
		t.Errorf("the new cluster holds the old one's data: %q", got)
	}
	if seeds := countAllSeeds(cluster); seeds != 1 {
		t.Errorf("%d pods start a new cluster, want 1", seeds)
	}
	leavesNothing(t, n, cluster)
}
