// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ScopeSetting is the annotation for operators with -cluster-wide, as flags and logs name it.
const ScopeSetting = api.ScopeAnnotation + "=" + api.ScopeClusterWide

// inScope reports whether an operator manages an object. One that runs with
// -cluster-wide takes those that are annotated so, one that watches its own
// namespace those without the annotation; so both can run in one cluster. An
// annotation with another value keeps both away.
func inScope(obj metav1.Object, clusterWide bool) bool {
	scope, annotated := obj.GetAnnotations()[api.ScopeAnnotation]
	if clusterWide {
		return scope == api.ScopeClusterWide
	}
	return !annotated
}

// takes reports whether the source's operator manages an object.
func (s *Source[T]) takes(obj metav1.Object) bool { return s.AnyScope || inScope(obj, s.ClusterWide) }

// unknownScope reports whether the annotation keeps every operator away, which is
// hardly what its author meant.
func unknownScope(obj metav1.Object) bool {
	scope, annotated := obj.GetAnnotations()[api.ScopeAnnotation]
	return annotated && scope != api.ScopeClusterWide
}

// Scope says in words what an operator manages.
func Scope(clusterWide, anyScope bool, namespace string) string {
	switch {
	case anyScope:
		return "all namespaces"
	case clusterWide:
		return "all namespaces that are annotated " + ScopeSetting
	}
	return "namespace " + namespace
}
