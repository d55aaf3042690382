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
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// waitBudget waits until drains must leave this many members; 0: there is no budget. It checks
// the status too.
func waitBudget(t *testing.T, n *harness.Namespace, cluster *harness.Cluster, want int) {
	t.Helper()
	harness.Wait(t, fmt.Sprintf("budget of %d", want), harness.Settle, func(ctx context.Context) error {
		got := 0
		budget, err := n.Kube.PolicyV1().PodDisruptionBudgets(n.Name).Get(ctx, cluster.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			got = budget.Spec.MinAvailable.IntValue()
			if want > 0 && (budget.Status.ObservedGeneration != budget.Generation || budget.Status.DesiredHealthy != int32(want)) {
				return fmt.Errorf("Kubernetes has not seen it yet: %+v", budget.Status)
			}
		case !apierrors.IsNotFound(err):
			return err
		}
		if inStatus := cluster.Status().MinAvailable; got != want || inStatus != want {
			return fmt.Errorf("it is %d, status.minAvailable %d", got, inStatus)
		}
		return nil
	})
}

func evict(t *testing.T, n *harness.Namespace, pod *corev1.Pod) error {
	t.Helper()
	return n.Kube.PolicyV1().Evictions(n.Name).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: n.Name}})
}

func TestBudgetFollowsTheClusterAndReturns(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(1, "")
	cluster.WaitSettled()
	waitBudget(t, n, cluster, 0)
	cluster.Resize(3)
	cluster.WaitSettled()
	waitBudget(t, n, cluster, 2)
	n.Shell("kubectl delete poddisruptionbudget " + cluster.Name)
	waitBudget(t, n, cluster, 2)
	n.Shell("kubectl patch poddisruptionbudget " + cluster.Name + ` -p '{"spec":{"minAvailable":0}}'`)
	waitBudget(t, n, cluster, 2)
	cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.PodDisruptionBudget = new(false) })
	waitBudget(t, n, cluster, 0)
	cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.PodDisruptionBudget = nil })
	waitBudget(t, n, cluster, 2)
	cluster.Resize(1)
	cluster.WaitSettled()
	waitBudget(t, n, cluster, 0)
}

// waitEvicted evicts a pod as soon as the budget allows it, like a drain: Kubernetes counts a
// pod some moments after it becomes ready.
func waitEvicted(t *testing.T, n *harness.Namespace, pod *corev1.Pod) {
	t.Helper()
	harness.Wait(t, "eviction of "+pod.Name, harness.Settle, func(context.Context) error {
		err := evict(t, n, pod)
		if apierrors.IsNotFound(err) {
			return nil // the previous answer was lost
		}
		return err
	})
}

// quorumWasKept fails the test if fewer members than a quorum of three were ready at any time.
func quorumWasKept(t *testing.T, serving *harness.Serving) {
	t.Helper()
	if fewest := serving.Fewest(); fewest < 2 {
		t.Errorf("of three members, %d were left at a time", fewest)
	}
}

// Nodes are drained one after the other, as for an update of all nodes.
func TestNodeDrainsLeaveAQuorum(t *testing.T) {
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	waitBudget(t, n, cluster, 2)
	writer := cluster.StartWriter()
	serving := cluster.WatchServing()
	nodes, err := n.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		t.Cleanup(func() { // clean up after a failed drain
			ctx := context.WithoutCancel(t.Context())
			if _, err := n.Kube.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, []byte(`{"spec":{"unschedulable":false}}`), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		})
		evicted := slices.DeleteFunc(cluster.Pods(), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != node.Name })
		n.ShellWithin(harness.Settle, "kubectl drain "+node.Name+" --ignore-daemonsets --delete-emptydir-data --pod-selector=etcd_cluster="+cluster.Name)
		cluster.WaitSettled(evicted...)
		n.Shell("kubectl uncordon " + node.Name)
	}
	quorumWasKept(t, serving)
	cluster.VerifyWrites(writer)
}

// Two nodes at once: Kubernetes refuses the second eviction until the first member has a
// replacement.
func TestNodeDrainOfASecondMemberIsRefused(t *testing.T) {
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	waitBudget(t, n, cluster, 2)
	writer := cluster.StartWriter()
	serving := cluster.WatchServing()
	uncordon := n.Cordon()
	pods := cluster.Pods()
	waitEvicted(t, n, pods[0])
	harness.Wait(t, "the evicted member removed", harness.Settle, func(context.Context) error {
		if slices.ContainsFunc(cluster.Pods(), func(pod *corev1.Pod) bool { return pod.UID == pods[0].UID }) {
			return fmt.Errorf("%s is there", pods[0].Name)
		}
		return nil
	})
	harness.Holds(t, "no further eviction is allowed", 10*time.Second, func(context.Context) error {
		for _, pod := range pods[1:] {
			switch err := evict(t, n, pod); {
			case err == nil:
				return fmt.Errorf("%s was evicted", pod.Name)
			case !apierrors.IsTooManyRequests(err):
				return fmt.Errorf("evict %s, which the budget should refuse: %w", pod.Name, err)
			}
		}
		return nil
	})
	uncordon()
	cluster.WaitSettled(pods[0])
	waitBudget(t, n, cluster, 2)
	waitEvicted(t, n, pods[1]) // with all three back
	cluster.WaitSettled(pods[:2]...)
	quorumWasKept(t, serving)
	cluster.VerifyWrites(writer)
}
