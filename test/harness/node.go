// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// All tests share the nodes, so tests that touch them run alone.

// KillNode kills everything on a node of the local Kubernetes. The node starts again when the
// test ends.
func (n *Namespace) KillNode(node string) {
	n.t.Helper()
	n.expectRestartOn(node)
	n.node(n.t.Context(), "kill", node)
	n.t.Cleanup(func() { n.bringBack(node, "start") })
}

// expectRestartOn allows one restart to each operator on a node.
func (n *Namespace) expectRestartOn(node string) {
	for app, crashes := range n.crashesOf() {
		for _, pod := range n.podsOf(app) {
			if pod.Spec.NodeName == node {
				crashes.Add(1)
			}
		}
	}
}

// WipeNode empties the disks of a killed node.
func (n *Namespace) WipeNode(node string) {
	n.t.Helper()
	n.node(n.t.Context(), "wipe", node)
}

// StartNode starts a killed node and waits until it is ready.
func (n *Namespace) StartNode(node string) {
	n.t.Helper()
	n.bringBack(node, "start")
}

// CutNode takes a node's link down; it is healed when the test ends. An operator there loses
// its Lease, and the log that says so can be lost in a later fault.
func (n *Namespace) CutNode(node string) {
	n.t.Helper()
	n.expectRestartOn(node)
	n.node(n.t.Context(), "cut", node)
	n.t.Cleanup(func() { n.bringBack(node, "heal") })
}

// HealNode takes a node's link up again and waits until the node is ready.
func (n *Namespace) HealNode(node string) {
	n.t.Helper()
	n.bringBack(node, "heal")
}

// bringBack undoes the faults of a node, once.
func (n *Namespace) bringBack(node, verb string) {
	n.t.Helper()
	if !n.nodesDown[node] {
		return
	}
	ctx, cancel := later(n.t.Context(), 3*time.Minute)
	defer cancel()
	n.node(ctx, verb, node)
	n.waitNode(ctx, node)
}

// Cordon makes all nodes except some unschedulable until the test ends or the caller calls the
// returned function.
func (n *Namespace) Cordon(except ...string) (release func()) {
	n.t.Helper()
	set := func(ctx context.Context, unschedulable bool) (cordoned int) {
		nodes, err := n.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			n.t.Errorf("list nodes: %v", err)
			return 0
		}
		for _, node := range nodes.Items {
			if slices.Contains(except, node.Name) {
				continue
			}
			cordoned++
			patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
			_, err := n.Kube.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil {
				n.t.Errorf("cordon %s (%t): %v", node.Name, unschedulable, err)
			}
		}
		return cordoned
	}
	cordoned := set(n.t.Context(), true)
	release = func() {
		ctx, cancel := later(n.t.Context(), time.Minute)
		defer cancel()
		set(ctx, false)
		nodes, err := n.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			n.t.Errorf("list nodes: %v", err)
			return
		}
		for _, node := range nodes.Items {
			n.awaitNode(ctx, node.Name, "uncordoned", func(node *corev1.Node) bool {
				return !tainted(node, corev1.TaintNodeUnschedulable)
			})
		}
	}
	n.t.Cleanup(release)
	n.awaitScheduler(cordoned)
	return release
}

func (n *Namespace) node(ctx context.Context, verb, node string) {
	n.t.Helper()
	if _, err := n.hackKube(ctx, "node", verb, node); err != nil {
		n.t.Fatal(err)
	}
	n.record.addState("node "+node, verb)
	if verb != "wipe" {
		n.nodesDown[node] = verb == "kill" || verb == "cut"
	}
}

// waitNode waits until a node is ready, and until the scheduler may use it.
func (n *Namespace) waitNode(ctx context.Context, name string) {
	n.t.Helper()
	n.awaitNode(ctx, name, "ready again", func(node *corev1.Node) bool {
		return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) && !tainted(node, corev1.TaintNodeNotReady) && !tainted(node, corev1.TaintNodeUnreachable)
	})
}

// tainted reports whether a node has a taint. The controller manager adds and removes taints
// some time after what they stand for.
func tainted(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

func (n *Namespace) awaitNode(ctx context.Context, name, what string, is func(*corev1.Node) bool) {
	n.t.Helper()
	for {
		node, err := n.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && is(node) {
			return
		}
		select {
		case <-ctx.Done():
			n.t.Errorf("node %s is not %s: error %v, taints %v", name, what, err, node.Spec.Taints)
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
