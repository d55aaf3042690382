//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A fault hits a member of a cluster, or a node and so all clusters. It returns when the fault
// is over, before the clusters have recovered.
type fault struct {
	name   string
	strike func(s *storm, c *target, member *corev1.Pod)
	// fits reports whether the cluster can survive the fault; nil: each can.
	fits func(c *target) bool
	// calm means that the fault may destroy a member of each cluster, or its data: all members
	// must be healthy before.
	calm bool
	// least is the shortest storm that has this fault unless the caller asks for it.
	least time.Duration
}

// faults have equal probability.
var faults = slices.Concat(processFaults, nodeFaults, diskFaults, linkFaults, apiServerFaults, admissionFaults, specFaults, spaceFaults, backupFaults)

func replicated(c *target) bool { return c.size >= 3 }

func outlivesAPod(c *target) bool { return replicated(c) || c.volumes }

func resizes(c *target) bool { return c.resizes }

// isOn returns the number of the cluster's members on a node.
func (c *target) isOn(node string) int {
	count := 0
	for _, p := range c.Pods() {
		if p.Spec.NodeName == node {
			count++
		}
	}
	return count
}

// outlivesTheDataOf reports whether a majority of the members is on other nodes.
func (c *target) outlivesTheDataOf(node string) bool { return 2*c.isOn(node) < c.size }
