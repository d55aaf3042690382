//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"
)

// A fault strikes a member of a cluster, or its node and so all clusters. It returns when
// the fault is over, not when the clusters are well again.
type fault struct {
	name   string
	strike func(s *storm, c *target, member *corev1.Pod)
	// fits reports whether the cluster can outlive the fault; nil: each can.
	fits func(c *target) bool
	// calm is true for a fault that may take a member's data, or a member, from each
	// cluster: all have to be well before.
	calm bool
}

// faults strike with the same likelihood.
var faults = []fault{
	{name: "etcd is killed", strike: func(_ *storm, c *target, member *corev1.Pod) { c.CrashMember(member) }},
	{name: "etcd hangs", fits: replicated, strike: func(s *storm, c *target, member *corev1.Pod) {
		c.StopMember(member)
		s.pass(5, 40)
		c.ContinueMember(member)
	}},
	{name: "a pod is deleted", calm: true, fits: outlivesAPod, strike: func(s *storm, _ *target, member *corev1.Pod) { s.n.DeletePod(member) }},
	{name: "the operator is killed", strike: func(s *storm, _ *target, _ *corev1.Pod) {
		if err := s.n.TryCrashOperator(); err != nil {
			s.t.Logf("the operator is not there to be killed: %v", err)
		}
	}},
	{name: "a node loses its power", strike: func(s *storm, _ *target, member *corev1.Pod) {
		s.n.KillNode(member.Spec.NodeName)
		s.pass(5, 40)
		s.n.StartNode(member.Spec.NodeName)
	}},
	{name: "all nodes lose their power", strike: func(s *storm, _ *target, _ *corev1.Pod) {
		nodes := s.nodes()
		for _, node := range nodes {
			s.n.KillNode(node)
		}
		s.rand.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
		for _, node := range nodes {
			s.n.StartNode(node)
		}
	}},
	{name: "a node comes back empty", calm: true, fits: replicated, strike: func(s *storm, _ *target, member *corev1.Pod) {
		if slices.ContainsFunc(s.targets, func(c *target) bool { return !replicated(c) && c.isOn(member.Spec.NodeName) }) {
			return // it would take all the data of that cluster
		}
		s.n.KillNode(member.Spec.NodeName)
		s.n.WipeNode(member.Spec.NodeName)
		s.n.StartNode(member.Spec.NodeName)
		s.giveUp(member.Spec.NodeName)
	}},
	{name: "a node is cut off", strike: func(s *storm, _ *target, member *corev1.Pod) {
		s.n.CutNode(member.Spec.NodeName)
		s.pass(5, 40)
		s.n.HealNode(member.Spec.NodeName)
	}},
	{name: "a cluster grows or shrinks", fits: replicated, strike: func(_ *storm, c *target, _ *corev1.Pod) {
		c.size = 8 - c.size // 3 and 5
		c.Resize(c.size)
	}},
	{name: "etcd is upgraded", strike: func(_ *storm, c *target, _ *corev1.Pod) {
		if len(c.upgrades) > 0 {
			c.SetVersion(c.upgrades[0])
			c.upgrades = c.upgrades[1:]
		}
	}},
}

func replicated(c *target) bool { return c.size >= 3 }

func outlivesAPod(c *target) bool { return replicated(c) || c.volumes }

// isOn reports whether a member of the cluster is on a node.
func (c *target) isOn(node string) bool {
	return slices.ContainsFunc(c.Pods(), func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
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
