// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// unlabelled says which pods have lost the labels by which Services select them. An observation
// shows such a pod only while the operator can't restore its labels.
func unlabelled(o *plan.Observation) plan.Reason {
	var names []string
	refusal := ""
	for _, p := range o.Pods {
		if p.Unlabelled && !p.Deleting {
			names = append(names, p.Name)
			refusal = p.RelabelRefused
		}
	}
	switch {
	case len(names) == 0:
		return plan.Reason{}
	case refusal != "":
		refusal = "; Kubernetes refuses to restore them: " + refusal
	default:
		refusal = "; somebody removes them each time"
	}
	return plan.Reason{Kind: plan.PodsUnlabelled, Detail: strings.Join(names, ", ") + refusal + "; the operator retries every " + relabelPause.String()}
}

// hidden reports whether no Service selects a pod of a healthy member. Clients reach none then.
func hidden(o *plan.Observation) bool {
	found := false
	for _, m := range o.Voters() {
		if !m.Healthy() {
			continue
		}
		if m.Pod == nil || !m.Pod.Unlabelled {
			return false
		}
		found = true
	}
	return found
}
