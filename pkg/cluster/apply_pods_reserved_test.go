// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// On OpenShift, a pod with the operator's own user would be refused.
func TestPodsGetTheIDsThatTheirNamespaceReserves(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	var lookup error
	w.cfg.ReservedIDs = func(_ context.Context, namespace string) (manifest.ReservedIDs, error) {
		if namespace != "ns" {
			t.Errorf("it asks for the namespace %s", namespace)
		}
		return manifest.ReservedIDs{User: ptr.To[int64](1000650000), FSGroup: ptr.To[int64](1000660000)}, lookup
	}
	c := w.cluster(w.edit(creating("a")))
	create := func() error {
		return c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seedPod("a")}})
	}
	lookup = errors.New("the API server hangs")
	if err := create(); !errors.Is(err, lookup) || len(w.storedPods()) > 0 {
		t.Fatalf("without an answer: error %v, %d pods", err, len(w.storedPods()))
	}
	lookup = nil
	if err := create(); err != nil {
		t.Fatal(err)
	}
	got := w.storedPods()[0].Spec.SecurityContext
	if ptr.Deref(got.RunAsUser, -1) != 1000650000 || ptr.Deref(got.FSGroup, -1) != 1000660000 {
		t.Errorf("the security context is %+v", got)
	}
}
