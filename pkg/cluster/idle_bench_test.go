// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// BenchmarkIdlePass is a pass for a cluster that is as specified, beside others in its
// namespace. The members answer at once: the time is that of the operator alone.
func BenchmarkIdlePass(b *testing.B) {
	for _, others := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			c := idleCluster(b, others)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.pass(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// idleCluster is a cluster of three members that is as specified, in a namespace with
// others of one member.
func idleCluster(tb testing.TB, others int) *Cluster {
	tb.Helper()
	obj := testCluster()
	w := newWorld(tb, clocktesting.NewFakeClock(noon), obj)
	fakeMembers{}.join(tb, w, "a", "b", "c")
	c := w.cluster(obj)
	for i := 0; ; i++ {
		s, err := c.pass(tb.Context())
		if err != nil || i == 20 {
			tb.Fatalf("after %d passes: %s, %v", i, s, err)
		}
		w.watch()
		if idle, ok := s.(plan.Idle); ok && idle.Why.Kind == plan.AsSpecified {
			break
		}
	}
	for i := range others {
		other := testCluster()
		other.Name = fmt.Sprint("other", i)
		pod := memberPod(tb, other, other.Name+"-0")
		if err := w.pods.Add(pod); err != nil {
			tb.Fatal(err)
		}
		for _, service := range []*corev1.Service{manifest.BuildPeerService(other), manifest.BuildClientService(other)} {
			if err := w.services.Add(service); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return c
}
