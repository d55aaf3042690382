// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestWhoTakesCareOfWhat(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations             map[string]string
		namespaced, clusterWide bool
		unknown                 bool
	}{
		"no annotations":       {namespaced: true},
		"other annotations":    {annotations: map[string]string{"a": "b"}, namespaced: true},
		"clusterwide":          {annotations: map[string]string{api.ScopeAnnotation: "clusterwide"}, clusterWide: true},
		"empty":                {annotations: map[string]string{api.ScopeAnnotation: ""}, unknown: true},
		"another word":         {annotations: map[string]string{api.ScopeAnnotation: "namespaced"}, unknown: true},
		"not quite that value": {annotations: map[string]string{api.ScopeAnnotation: "ClusterWide"}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{Annotations: tc.annotations}
			if got := inScope(obj, false); got != tc.namespaced {
				t.Errorf("an operator in the namespace takes care: %t, want %t", got, tc.namespaced)
			}
			if got := inScope(obj, true); got != tc.clusterWide {
				t.Errorf("an operator with -cluster-wide takes care: %t, want %t", got, tc.clusterWide)
			}
			if fork := (&Source[*api.EtcdBackup]{ClusterWide: true, AnyScope: true}); !fork.takes(obj) {
				t.Error("an operator with -any-scope does not take care")
			}
			if got := unknownScope(obj); got != tc.unknown {
				t.Errorf("nobody does: %t, want %t", got, tc.unknown)
			}
		})
	}
}
