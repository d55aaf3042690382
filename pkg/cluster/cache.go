// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// indexByCluster finds the objects with the label of one cluster.
const indexByCluster = "cluster"

// Indexers are those of the caches of a cluster's objects. Without the index, each pass would
// look at all objects of the namespace.
var Indexers = cache.Indexers{indexByCluster: func(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok || o.GetLabels()[api.ClusterLabel] == "" {
		return nil, nil
	}
	return []string{indexValue(o.GetNamespace(), o.GetLabels()[api.ClusterLabel])}, nil
}}

func indexValue(namespace, cluster string) string { return namespace + "/" + cluster }

// PodLister lists pods of a cache with these Indexers.
func PodLister(indexer cache.Indexer) corelisters.PodLister {
	return podLister{corelisters.NewPodLister(indexer), indexer}
}

// ServiceLister lists Services of a cache with these Indexers.
func ServiceLister(indexer cache.Indexer) corelisters.ServiceLister {
	return serviceLister{corelisters.NewServiceLister(indexer), indexer}
}

// VolumeLister lists PersistentVolumeClaims of a cache with these Indexers.
func VolumeLister(indexer cache.Indexer) corelisters.PersistentVolumeClaimLister {
	return volumeLister{corelisters.NewPersistentVolumeClaimLister(indexer), indexer}
}

type podLister struct {
	corelisters.PodLister
	indexer cache.Indexer
}

func (l podLister) Pods(namespace string) corelisters.PodNamespaceLister {
	return podNamespaceLister{l.PodLister.Pods(namespace), l.indexer, namespace}
}

type podNamespaceLister struct {
	corelisters.PodNamespaceLister
	indexer   cache.Indexer
	namespace string
}

func (l podNamespaceLister) List(selector labels.Selector) ([]*corev1.Pod, error) {
	return listIndexed(l.indexer, l.namespace, selector, l.PodNamespaceLister.List)
}

type serviceLister struct {
	corelisters.ServiceLister
	indexer cache.Indexer
}

func (l serviceLister) Services(namespace string) corelisters.ServiceNamespaceLister {
	return serviceNamespaceLister{l.ServiceLister.Services(namespace), l.indexer, namespace}
}

type serviceNamespaceLister struct {
	corelisters.ServiceNamespaceLister
	indexer   cache.Indexer
	namespace string
}

func (l serviceNamespaceLister) List(selector labels.Selector) ([]*corev1.Service, error) {
	return listIndexed(l.indexer, l.namespace, selector, l.ServiceNamespaceLister.List)
}

type volumeLister struct {
	corelisters.PersistentVolumeClaimLister
	indexer cache.Indexer
}

func (l volumeLister) PersistentVolumeClaims(namespace string) corelisters.PersistentVolumeClaimNamespaceLister {
	return volumeNamespaceLister{l.PersistentVolumeClaimLister.PersistentVolumeClaims(namespace), l.indexer, namespace}
}

type volumeNamespaceLister struct {
	corelisters.PersistentVolumeClaimNamespaceLister
	indexer   cache.Indexer
	namespace string
}

func (l volumeNamespaceLister) List(selector labels.Selector) ([]*corev1.PersistentVolumeClaim, error) {
	return listIndexed(l.indexer, l.namespace, selector, l.PersistentVolumeClaimNamespaceLister.List)
}

// listIndexed lists by the index if the selector names a cluster, and otherwise by all.
func listIndexed[T metav1.Object](indexer cache.Indexer, namespace string, selector labels.Selector, all func(labels.Selector) ([]T, error)) ([]T, error) {
	cluster, named := selector.RequiresExactMatch(api.ClusterLabel)
	if !named || cluster == "" {
		return all(selector)
	}
	objects, err := indexer.ByIndex(indexByCluster, indexValue(namespace, cluster))
	if err != nil {
		return nil, fmt.Errorf("look up the cluster %s: %w", cluster, err)
	}
	var found []T
	for _, obj := range objects {
		if o, ok := obj.(T); ok && selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o)
		}
	}
	return found, nil
}
