// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import "fmt"

// Warnings returns what is allowed in a cluster's spec but seldom wanted, each
// as a sentence for an event.
func Warnings(c *EtcdCluster) []string {
	var warnings []string
	if n := c.Spec.Size; n%2 == 0 && n >= minSize && n <= maxSize {
		warnings = append(warnings, fmt.Sprintf("spec.size is even: %d members survive the loss of %d, as %d would, "+
			"and one more of them can fail; prefer %d or %d", n, (n-1)/2, n-1, n-1, n+1))
	}
	p := c.Spec.Pod
	if p == nil {
		return warnings
	}
	switch {
	case p.AntiAffinity && p.Affinity != nil:
		warnings = append(warnings, "spec.pod.antiAffinity is ignored, since spec.pod.affinity is set; remove it")
	case p.AntiAffinity:
		warnings = append(warnings, "spec.pod.antiAffinity is deprecated: use spec.pod.affinity or spec.pod.topologySpreadConstraints")
	}
	if c.Spec.PriorityClassName != "" && p.PriorityClassName != "" && p.PriorityClassName != c.Spec.PriorityClassName {
		warnings = append(warnings, "spec.pod.priorityClassName is ignored, since spec.priorityClassName is set; remove it")
	}
	if p.Tmpfs {
		warnings = append(warnings, "spec.pod.tmpfs keeps the data in memory: a member loses it with its pod, "+
			"and all of it is lost when most of the members' nodes restart at the same time")
	}
	return warnings
}
