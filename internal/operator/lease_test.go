// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/internal/pod"
)

// Operators that manage the same clusters compete for the same Lease, and others do not.
func TestWhoCompetesWithWhom(t *testing.T) {
	lease := func(namespace string, clusterWide bool) string {
		inNamespace, name := leaseOf("etcd-operator", namespace, clusterWide)
		return inNamespace + "/" + name
	}
	for who, c := range map[string]struct{ got, want string }{
		"in a namespace":            {lease("a", false), "a/etcd-operator"},
		"cluster-wide":              {lease("a", true), "default/etcd-operator-cluster-wide"},
		"cluster-wide from another": {lease("b", true), lease("a", true)},
	} {
		if c.got != c.want {
			t.Errorf("%s: Lease %s, want %s", who, c.got, c.want)
		}
	}
	if lease("default", true) == lease("default", false) {
		t.Error("in the namespace default the two kinds shut each other out")
	}
	// Pods of Deployments in two namespaces may have the same name.
	if identity(pod.Pod{Namespace: "a", Name: "o"}, true) == identity(pod.Pod{Namespace: "b", Name: "o"}, true) {
		t.Error("two cluster-wide operators take each other for themselves")
	}
}
