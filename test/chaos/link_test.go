//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// pause is the program that runs in each pod as long as the pod does.
	pause           = "pause"
	memberUnreached = "operator cut off from a member"
)

// Links that are cut in one direction alone.
var linkFaults = []fault{
	{name: "member mute", fits: replicated, strike: func(s *storm, c *target, member *corev1.Pod) {
		if others := c.othersThan(member); others != "" {
			release := s.n.Hinder(member, pause, "ip daddr { "+others+" } drop")
			s.hold(5, 60)
			release()
		}
	}},
	{name: "member deaf", fits: replicated, strike: func(s *storm, c *target, member *corev1.Pod) {
		if others := c.othersThan(member); others != "" {
			release := s.n.HinderReceiving(member, pause, "ip saddr { "+others+" } drop")
			s.hold(5, 60)
			release()
		}
	}},
	{name: memberUnreached, strike: func(s *storm, _ *target, member *corev1.Pod) {
		s.hinderOperator(memberUnreached, "ip daddr "+member.Status.PodIP+" drop")
	}},
}

// othersThan are the addresses of the other members.
func (c *target) othersThan(member *corev1.Pod) string {
	var addresses []string
	for _, p := range c.Pods() {
		if p.UID != member.UID && p.Status.PodIP != "" {
			addresses = append(addresses, p.Status.PodIP)
		}
	}
	return strings.Join(addresses, ", ")
}
