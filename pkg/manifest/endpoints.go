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
	return endpoints(obj, pods, Names.ClientURL, func(p PodState) bool { return p.Running })
}

// DataEndpoints returns where containers serve the databases of members that have started without a
// quorum, ordered by name. It ignores pods of others.
func DataEndpoints(obj *api.EtcdCluster, pods []corev1.Pod) []etcd.Endpoint {
	return endpoints(obj, pods, Names.DataURL, func(p PodState) bool { return p.DataServer.Running })
}

func endpoints(obj *api.EtcdCluster, pods []corev1.Pod, url func(n Names, member string) string, serves func(PodState) bool) []etcd.Endpoint {
	n := NamesOf(obj)
	var list []etcd.Endpoint
	for _, pod := range pods {
		if p := PodStateOf(&pod); metav1.IsControlledBy(&pod, obj) && serves(p) && !p.Deleting && p.IP != "" {
			list = append(list, etcd.Endpoint{URL: url(n, p.Name), IP: p.IP})
		}
	}
	slices.SortFunc(list, func(a, b etcd.Endpoint) int { return cmp.Compare(a.URL, b.URL) })
	return list
}
