//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"
	"time"

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
	// least is how long a storm has to last that it strikes in, if nobody asks for it.
	least time.Duration
}

// faults strike equally often.
var faults = slices.Concat(processFaults, nodeFaults, diskFaults, linkFaults, apiServerFaults, admissionFaults, specFaults, spaceFaults, backupFaults)

func replicated(c *target) bool { return c.size >= 3 }

func outlivesAPod(c *target) bool { return replicated(c) || c.volumes }

func resizes(c *target) bool { return c.resizes }

// isOn counts the members of the cluster that are on a node.
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
