//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const nodeEmpty = "node with an empty disk"

var nodeFaults = []fault{
	{name: "power loss of a node", strike: func(s *storm, _ *target, member *corev1.Pod) {
		s.n.KillNode(member.Spec.NodeName)
		s.hold(5, 40)
		s.n.StartNode(member.Spec.NodeName)
	}},
	{name: "power loss of all nodes", strike: func(s *storm, _ *target, _ *corev1.Pod) {
		nodes := s.nodes()
		for _, node := range nodes {
			s.n.KillNode(node)
		}
		s.rand.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
		for _, node := range nodes {
			s.n.StartNode(node)
		}
	}},
	{name: nodeEmpty, calm: true, fits: replicated, strike: func(s *storm, _ *target, member *corev1.Pod) {
		node := member.Spec.NodeName
		if slices.ContainsFunc(s.targets, func(c *target) bool { return !c.outlivesTheDataOf(node) }) {
			s.missed(nodeEmpty, "a cluster would lose a majority on "+node)
			return
		}
		s.n.KillNode(node)
		s.n.WipeNode(node)
		s.n.StartNode(node)
		s.giveUp(node)
	}},
	{name: "node cut off", strike: func(s *storm, _ *target, member *corev1.Pod) {
		s.n.CutNode(member.Spec.NodeName)
		s.hold(5, 40)
		s.n.HealNode(member.Spec.NodeName)
	}},
}

// giveUp does what the operator says of members whose data is gone: it deletes the pods
// that were on a node, and their claims.
func (s *storm) giveUp(node string) {
	for _, c := range s.targets {
		for _, pod := range c.Pods() {
			if pod.Spec.NodeName != node || pod.DeletionTimestamp != nil {
				continue
			}
			if c.volumes {
				if err := s.n.Kube.CoreV1().PersistentVolumeClaims(s.n.Name).Delete(s.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
					s.t.Errorf("give up %s: %v", pod.Name, err)
				}
			}
			s.n.DeletePod(pod)
		}
	}
}

func (s *storm) nodes() []string {
	list, err := s.n.Kube.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatalf("list nodes: %v", err)
	}
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names
}
