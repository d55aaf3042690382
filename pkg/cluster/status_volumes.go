// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// volumesDeleted says which members run on volumes that somebody has deleted. Kubernetes keeps such a volume
// until its pod ends, and nobody can take the deletion back.
func volumesDeleted(o *plan.Observation) plan.Reason {
	if o.Ending {
		return plan.Reason{}
	}
	var names []string
	for _, m := range o.Own() {
		if m.Volume != nil && m.Volume.Deleting && m.Pod != nil && m.Pod.Claimed && !m.Pod.Deleting && !m.Pod.Finished {
			names = append(names, m.PodName)
		}
	}
	if len(names) == 0 {
		return plan.Reason{}
	}
	detail := strings.Join(names, ", ") + ". Kubernetes deletes the data of each of these members when its pod ends. "
	if len(o.Voters()) < 3 {
		detail += "Raise spec.size to 3 first. "
	}
	return plan.Reason{Kind: plan.VolumesDeleted, Detail: detail + "When all members are ready, delete one of these pods: the operator replaces the member on a new volume. Then the next one"}
}
