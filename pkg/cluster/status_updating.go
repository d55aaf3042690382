// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// updating returns how far the members follow an edit of their template; the status is "" if
// there is nothing to report.
func updating(o *plan.Observation) (status corev1.ConditionStatus, reason, message string) {
	own := o.Own()
	behind := plan.Count(own, func(m plan.MemberState) bool { return o.BehindTemplate(m) || o.BehindImage(m) })
	switch {
	case behind == 0:
		for _, v := range o.Volumes {
			if v.RefusedSize != "" && o.IsMember(v.Name) {
				return corev1.ConditionFalse, "Volume expansion refused", v.RefusedSize
			}
		}
		return "", "", ""
	case o.UpdateRefused != "":
		return corev1.ConditionFalse, "Update refused", "Kubernetes refuses the pods that the spec describes; the members stay as they are: " + o.UpdateRefused
	}
	message = fmt.Sprintf("%d of %d members follow the spec", len(own)-behind, len(own))
	return corev1.ConditionTrue, "Cluster updating", message + strings.Join(joiningTroubles(o), "")
}

// joiningTroubles says why pods of new members are stuck, a clause for each.
func joiningTroubles(o *plan.Observation) []string {
	var troubles []string
	pods := o.Planned()
	for _, m := range o.Learners() {
		if m.Pod != nil && !m.Joined() && !m.Pod.Started && !m.Pod.Deleting {
			pods = append(pods, *m.Pod)
		}
	}
	for _, p := range pods {
		if p.Problem != "" {
			trouble := "; the new " + p.Name + " waits: " + p.Problem
			if p.Crowded > 0 {
				trouble += "; " + o.WayToRoom(p)
			}
			troubles = append(troubles, trouble)
		}
	}
	return troubles
}

func setUpdating(st *api.ClusterStatus, o *plan.Observation, set func(api.ClusterConditionType, corev1.ConditionStatus, string, string)) {
	if o.NobodyAnswers() {
		return // its progress is unknown
	}
	status, reason, message := updating(o)
	if status == "" {
		clearCondition(st, api.ClusterConditionUpdating)
		return
	}
	set(api.ClusterConditionUpdating, status, reason, message)
}
