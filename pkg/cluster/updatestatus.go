// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// updating tells how far the members follow an edit of how they are made; the
// status is "" when there is nothing to tell.
func updating(o *observation) (status corev1.ConditionStatus, reason, message string) {
	own := o.own()
	behind := count(own, func(m memberState) bool { return o.behindTemplate(m) || o.behindImage(m) })
	switch {
	case behind == 0:
		for _, v := range o.volumes {
			if v.refusedSize != "" && o.isMember(v.name) {
				return corev1.ConditionFalse, "Volume expansion refused", v.refusedSize
			}
		}
		return "", "", ""
	case o.updateRefused != "":
		return corev1.ConditionFalse, "Update refused", "Kubernetes refuses the pods that the spec describes; the members stay as they are: " + o.updateRefused
	}
	message = fmt.Sprintf("%d of %d members follow the spec", len(own)-behind, len(own))
	return corev1.ConditionTrue, "Cluster updating", message + strings.Join(joiningTroubles(o), "")
}

// behindImage reports whether a member has to follow an edit of spec.repository: its
// image is of the spec's version, and of another repository.
func (o *observation) behindImage(m memberState) bool {
	target := o.spec.EffectiveVersion()
	return m.pod != nil && !m.pod.legacy && sameVersion(m.pod.version, target) && m.pod.image != o.image(target)
}

// joiningTroubles tells why pods of new members don't get on, a clause each.
func joiningTroubles(o *observation) []string {
	var troubles []string
	for _, p := range o.planned() {
		if p.problem != "" {
			trouble := "; the new " + p.name + " waits: " + p.problem
			if p.crowded > 0 {
				trouble += "; " + o.wayToRoom(p)
			}
			troubles = append(troubles, trouble)
		}
	}
	return troubles
}

// surge tells whether the members beyond the spec's size are there because one is
// being replaced.
func (o *observation) surge() bool {
	return len(o.own()) == o.size() && o.size() > o.spec.Size
}

func setUpdating(st *api.ClusterStatus, o *observation, set func(api.ClusterConditionType, corev1.ConditionStatus, string, string)) {
	if o.unheard() {
		return // it is neither going on nor over
	}
	status, reason, message := updating(o)
	if status == "" {
		clearCondition(st, api.ClusterConditionUpdating)
		return
	}
	set(api.ClusterConditionUpdating, status, reason, message)
}
