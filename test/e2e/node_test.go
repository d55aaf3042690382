//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// These tests touch nodes, which all tests share: they do not run in parallel.

// awayFrom returns a member's node on which the operator does not run, and the cluster's pods
// on it.
func awayFrom(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) (node string, pods []*corev1.Pod) {
	t.Helper()
	operator := n.AwaitOperator()
	for _, pod := range cluster.Pods() {
		if pod.Spec.NodeName != operator.Spec.NodeName && (node == "" || pod.Spec.NodeName == node) {
			node = pod.Spec.NodeName
			pods = append(pods, pod)
		}
	}
	if node == "" {
		t.Fatal("all members are on the operator's node")
	}
	if len(pods) > 1 {
		t.Fatalf("%d of 3 members are on %s: members should be spread", len(pods), node)
	}
	return node, pods
}

func TestNodeKilledIsSurvivedAndItsMemberReplaced(t *testing.T) {
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	node, pods := awayFrom(t, n, cluster)
	writer := cluster.StartWriter()
	n.KillNode(node)
	harness.Wait(t, "status that names the unready member", harness.Settle, func(context.Context) error {
		status := cluster.Status()
		if len(status.Members.Unready) == 1 && status.Members.Unready[0] == pods[0].Name {
			return nil
		}
		return fmt.Errorf("unready: %v", status.Members.Unready)
	})
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) // two of three serve
	// Kubernetes deletes the pod after five minutes, the default of every pod. Here a person
	// does so at once. On a lost node, the pod terminates forever, and the operator recreates
	// the member elsewhere.
	if err := n.Kube.CoreV1().Pods(n.Name).Delete(t.Context(), pods[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, "a member on another node", harness.Settle, func(ctx context.Context) error {
		members, err := cluster.Settled(ctx, pods...)
		if err == nil && len(members) != 3 {
			err = fmt.Errorf("%d members", len(members))
		}
		return err
	})
	n.StartNode(node)
	cluster.WaitSettled(pods...)
	cluster.VerifyWrites(writer)
}

// A node that is cut off for less than Kubernetes' timeout returns with its member and its
// data: the operator replaces nothing.
func TestNodeCutOffAndHealed(t *testing.T) {
	n := harness.New(t)
	cluster := n.Create(3, "")
	before := cluster.WaitSettled()
	node, pods := awayFrom(t, n, cluster)
	writer := cluster.StartWriter()
	n.CutNode(node)
	harness.Wait(t, "status that names the unready member", harness.Settle, func(context.Context) error {
		status := cluster.Status()
		if len(status.Members.Unready) == 1 && status.Members.Unready[0] == pods[0].Name {
			return nil
		}
		return fmt.Errorf("unready: %v", status.Members.Unready)
	})
	n.HealNode(node)
	after := cluster.WaitSettled()
	for i := range before {
		if before[i].ID != after[i].ID {
			t.Errorf("member %x became %x", before[i].ID, after[i].ID)
		}
	}
	cluster.VerifyWrites(writer)
}

// A pod that can't be scheduled blocks nothing else.
func TestNodeShortageFreezesNothingElse(t *testing.T) {
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	uncordon := n.Cordon()
	cluster.Resize(4)
	harness.Wait(t, "a pod that can't be scheduled", harness.Settle, func(context.Context) error {
		for _, pod := range cluster.Pods() {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
					return nil
				}
			}
		}
		return fmt.Errorf("%d pods", len(cluster.Pods()))
	})
	if members := cluster.VotingMembers(); members != 3 {
		t.Errorf("%d voting members: a pod that doesn't run must not cost quorum", members)
	}
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	deleteService(t, n, cluster.Name+"-client")
	crashed := cluster.Follower()
	cluster.CrashMember(crashed)
	cluster.WaitRestarted(crashed)
	cluster.Resize(3)
	cluster.WaitSettled()
	cluster.Resize(5)
	uncordon()
	cluster.WaitSettled()
	cluster.VerifyWrites(writer)
}
