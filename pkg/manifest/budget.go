// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// BuildBudget builds the PodDisruptionBudget of a cluster, which makes evictions leave this
// many ready members.
func BuildBudget(obj *api.EtcdCluster, minAvailable int) *policyv1.PodDisruptionBudget {
	n := NamesOf(obj)
	least := intstr.FromInt(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Name:            n.Budget(),
			Namespace:       obj.Namespace,
			Labels:          n.Labels(),
			OwnerReferences: []metav1.OwnerReference{OwnerOf(obj)},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: n.Labels()},
		},
	}
}

// UpdatedBudget returns live with the operator's fields of want, and says what somebody else
// has edited. Users may set how evictions treat unready members. UpdatedBudget does not report
// minAvailable, because the operator changes it itself.
func UpdatedBudget(live, want *policyv1.PodDisruptionBudget) (mended *policyv1.PodDisruptionBudget, edited string) {
	mended = live.DeepCopy()
	var changed differences
	mendMeta(&mended.ObjectMeta, want)
	changed.note("labels", maps.Equal(live.Labels, mended.Labels))
	changed.note("owner", equality.Semantic.DeepEqual(live.OwnerReferences, mended.OwnerReferences))
	mended.Spec.MinAvailable, mended.Spec.MaxUnavailable = want.Spec.MinAvailable, nil
	changed.note("maxUnavailable", live.Spec.MaxUnavailable == nil)
	mended.Spec.Selector = want.Spec.Selector
	changed.note("selector", equality.Semantic.DeepEqual(live.Spec.Selector, want.Spec.Selector))
	return mended, strings.Join(changed, ", ")
}

// MinAvailableOf returns the number in a budget; 0 for a percentage or none, which the
// operator never writes.
func MinAvailableOf(b *policyv1.PodDisruptionBudget) int {
	if least := b.Spec.MinAvailable; least != nil && least.Type == intstr.Int {
		return least.IntValue()
	}
	return 0
}
