// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// affinity returns the user's affinity, or else the one of the deprecated antiAffinity.
func affinity(obj *api.EtcdCluster, policy *api.PodPolicy) *corev1.Affinity {
	if policy.Affinity != nil || !policy.AntiAffinity {
		return policy.Affinity
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: podSelector(obj),
			TopologyKey:   corev1.LabelHostname,
		}},
	}}
}

// topologySpread returns the user's constraints, even an empty list. By default it prefers
// members on different hosts and zones without a requirement, so that it never conflicts with
// an affinity.
func topologySpread(obj *api.EtcdCluster, policy *api.PodPolicy) []corev1.TopologySpreadConstraint {
	if policy.TopologySpreadConstraints == nil {
		return []corev1.TopologySpreadConstraint{softSpread(obj, corev1.LabelHostname), softSpread(obj, corev1.LabelTopologyZone)}
	}
	constraints := policy.TopologySpreadConstraints
	for i := range constraints {
		// A constraint without a selector would count no pods.
		if constraints[i].LabelSelector == nil {
			constraints[i].LabelSelector = podSelector(obj)
		}
	}
	return constraints
}

func softSpread(obj *api.EtcdCluster, topologyKey string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew:           1,
		TopologyKey:       topologyKey,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     podSelector(obj),
	}
}

// podSelector selects the pods of a cluster.
func podSelector(obj *api.EtcdCluster) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: NamesOf(obj).Labels()}
}
