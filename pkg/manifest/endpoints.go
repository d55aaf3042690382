// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// PodSelector selects the pods of a cluster's members.
func PodSelector(cluster string) labels.Selector {
	return labels.SelectorFromSet(Names{Cluster: cluster}.Labels())
}

// ClientEndpoints returns where the cluster's running members serve clients, ordered by name.
// It ignores pods of others.
func ClientEndpoints(obj *api.EtcdCluster, pods []corev1.Pod) []etcd.Endpoint {
	n := NamesOf(obj)
	var endpoints []etcd.Endpoint
	for _, pod := range pods {
		if p := PodStateOf(&pod); metav1.IsControlledBy(&pod, obj) && p.Running && !p.Deleting && p.IP != "" {
			endpoints = append(endpoints, etcd.Endpoint{URL: n.ClientURL(p.Name), IP: p.IP})
		}
	}
	slices.SortFunc(endpoints, func(a, b etcd.Endpoint) int { return cmp.Compare(a.URL, b.URL) })
	return endpoints
}
