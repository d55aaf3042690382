// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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

// strangers says which ready pods of others have the labels by which Services select members. A client that
// reaches one can read and write the data of another etcd. During an import, they may be former members.
func strangers(o *plan.Observation) plan.Reason {
	names := o.ReadyPodsOfOthers
	if len(names) == 0 || o.Importing() || o.Status.Phase != api.ClusterPhaseRunning {
		return plan.Reason{}
	}
	const most = 3
	listed := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return plan.Reason{Kind: plan.StrangePods, Detail: listed + "; remove their label " + api.ClusterLabel + ", or delete them. The PodDisruptionBudget allows no more evictions because of them"}
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
