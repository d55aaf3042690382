// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// ScopeAnnotation on an object says which operators take care of it.
	ScopeAnnotation = "etcd.database.coreos.com/scope"
	// ScopeClusterWide is the value for operators that run with -cluster-wide,
	// and for them alone.
	ScopeClusterWide = "clusterwide"
	// ScopeSetting is the annotation with that value, as flags and logs name it.
	ScopeSetting = ScopeAnnotation + "=" + ScopeClusterWide
)

// inScope tells whether an operator takes care of an object. One that runs with
// -cluster-wide takes those that are annotated so, one that watches its own
// namespace those without the annotation; so both can run in one cluster. An
// annotation with another value keeps both away.
func inScope(obj metav1.Object, clusterWide bool) bool {
	scope, annotated := obj.GetAnnotations()[ScopeAnnotation]
	if clusterWide {
		return scope == ScopeClusterWide
	}
	return !annotated
}

// unknownScope tells whether the annotation keeps every operator away, which is
// hardly what its author meant.
func unknownScope(obj metav1.Object) bool {
	scope, annotated := obj.GetAnnotations()[ScopeAnnotation]
	return annotated && scope != ScopeClusterWide
}

// Scope says in words what an operator takes care of.
func Scope(clusterWide bool, namespace string) string {
	if clusterWide {
		return "all namespaces that are annotated " + ScopeSetting
	}
	return "namespace " + namespace
}
