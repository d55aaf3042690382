// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/readiness"
)

// setReady completes a verdict by the conditions that follow from its status.
func (r *Restore) setReady(v *verdict, now time.Time) {
	if v.status.Phase == api.RestorePhaseNone {
		return // it is deleted before the operator did anything
	}
	if r.dropsConditions {
		bare := v.status.DeepCopy()
		bare.Conditions = r.obj.Status.Conditions
		if equality.Semantic.DeepEqual(*bare, r.obj.Status) {
			return // a write would change nothing, again and again
		}
	}
	readiness.OfRestore(&v.status, v.needsPerson, now).Apply(&v.status.Conditions, v.status.ObservedGeneration, now)
}

// helpless marks a verdict whose obstacle only a person can remove.
func (v *verdict) helpless() *verdict {
	v.needsPerson = true
	return v
}

// clusterNeedsPerson reports whether the restore waits for an EtcdCluster that does not get
// on without a person.
func clusterNeedsPerson(o *observation, v *verdict) bool {
	c := o.cluster
	switch {
	case c == nil || v.step != nil || v.status.Phase != api.RestorePhaseStarting && v.status.Phase != api.RestorePhaseGrowing:
		return false
	case c.spec.Paused:
		return true
	case c.status.Phase == api.ClusterPhaseNone:
		return o.now.Sub(c.live.GetCreationTimestamp().Time) >= untouched // no etcd operator runs
	}
	return c.status.Condition(api.ClusterConditionStalled).Status == corev1.ConditionTrue
}
