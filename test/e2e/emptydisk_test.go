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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// All nodes lose power, and return with their disks: so do all members.
func TestNodesLoseTheirPowerAndKeepTheirDisks(t *testing.T) {
	n, cluster, seed, others := threeNodes(t)
	writer := cluster.StartWriter()
	members := slices.Concat(others, []*corev1.Pod{seed})
	for _, pod := range members {
		n.KillNode(pod.Spec.NodeName)
	}
	for _, pod := range members {
		n.StartNode(pod.Spec.NodeName)
	}
	cluster.WaitSettled()
	isKept(t, cluster, members)
	cluster.VerifyWrites(writer)
}

// All nodes lose power. The node of the seed and of the operator returns first and alone,
// under its old name with an empty disk. The kubelet starts the pods that it finds at the API
// server, as if they were new.

// The operator's note on the pod keeps etcd from starting.
func TestNodeOfTheSeedComesBackEmptyAfterAPowerLoss(t *testing.T) {
	n, cluster, seed, others := powerLoss(t)
	n.StartNode(seed.Spec.NodeName)
	cluster.WaitWarning(harness.Settle, "Member Stuck", seed.Name, "has served from this pod before")
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	areLeft(t, cluster, others)
	for _, pod := range others {
		n.StartNode(pod.Spec.NodeName)
	}
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) // two of three serve
	stuck, err := n.Kube.CoreV1().Pods(n.Name).Get(t.Context(), seed.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.DeletePod(stuck) // the message asks for this
	cluster.WaitSettled(stuck)
	isKept(t, cluster, others)
}

// Here the note is absent, as after a webhook's removal or a bug: an empty etcd starts under
// the old IDs. The operator's record prevents two mistakes: to take the empty etcd for the
// cluster, and to delete the pods with the data as superfluous.
func TestNodeOfTheSeedComesBackEmptyAndNothingIsDeleted(t *testing.T) {
	n, cluster, seed, others := powerLoss(t)
	patch := []byte(`{"metadata":{"annotations":{"etcd.database.coreos.com/started":null}}}`)
	if _, err := n.Kube.CoreV1().Pods(n.Name).Patch(t.Context(), seed.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	n.StartNode(seed.Spec.NodeName)
	cluster.WaitWarning(harness.Settle, "Data Missing", others[0].Name, others[1].Name, "accept-data")
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	areLeft(t, cluster, others)
	if reason := cluster.Status().Reason; reason == "" {
		t.Error("status.reason says nothing")
	}
	// The message's first advice: bring back the nodes of the members.
	n.KillNode(seed.Spec.NodeName)
	for _, pod := range others {
		n.StartNode(pod.Spec.NodeName)
	}
	n.WipeNode(seed.Spec.NodeName)
	n.StartNode(seed.Spec.NodeName)
	cluster.WaitCondition(2*harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	isKept(t, cluster, others)
}

// powerLoss kills all nodes of a cluster and wipes that of the seed.
func powerLoss(t *testing.T) (n *harness.Namespace, cluster *harness.Cluster, seed *corev1.Pod, others []*corev1.Pod) {
	t.Helper()
	n, cluster, seed, others = threeNodes(t)
	for _, pod := range []*corev1.Pod{others[0], others[1], seed} {
		n.KillNode(pod.Spec.NodeName)
	}
	n.WipeNode(seed.Spec.NodeName)
	return n, cluster, seed, others
}

// threeNodes creates a cluster of three members on three nodes. The operator runs on the
// seed's node.
func threeNodes(t *testing.T) (n *harness.Namespace, cluster *harness.Cluster, seed *corev1.Pod, others []*corev1.Pod) {
	t.Helper()
	n = harness.New(t)
	release := n.Cordon(n.AwaitOperator().Spec.NodeName)
	cluster = n.Create(1, "")
	cluster.WaitSettled()
	seed = cluster.Pods()[0]
	release()
	cluster.Resize(3)
	cluster.WaitSettled()
	for _, pod := range cluster.Pods() {
		if pod.Name != seed.Name {
			others = append(others, pod)
		}
	}
	if nodes := []string{seed.Spec.NodeName, others[0].Spec.NodeName, others[1].Spec.NodeName}; len(slices.Compact(slices.Sorted(slices.Values(nodes)))) != 3 {
		t.Fatalf("the members are on %v", nodes)
	}
	cluster.Put("kept", "yes")
	return n, cluster, seed, others
}

// areLeft checks that pods stay as they are.
func areLeft(t *testing.T, cluster *harness.Cluster, pods []*corev1.Pod) {
	t.Helper()
	harness.Holds(t, "the members that hold the data are left alone", 15*time.Second, func(context.Context) error {
		now := cluster.Pods()
		for _, pod := range pods {
			if !slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.UID == pod.UID && p.DeletionTimestamp == nil }) {
				return fmt.Errorf("%s was deleted", pod.Name)
			}
		}
		return nil
	})
}

func isKept(t *testing.T, cluster *harness.Cluster, pods []*corev1.Pod) {
	t.Helper()
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("the key that was written is %q", got)
	}
	areLeft(t, cluster, pods)
}
