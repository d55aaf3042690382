// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// Two pods that join one after the other compete for the only free node. If the second one gets
// it each time, the operator recreates both each time.
func TestAfterAPodWithoutANodePodsAreCreatedOneByOne(t *testing.T) {
	for why, heldUp := range map[string]bool{"others wait for it": true, "the size is 3": false} {
		t.Run(why, func(t *testing.T) {
			obj := testCluster()
			clock := clocktesting.NewFakeClock(noon)
			w := newWorld(t, clock, obj)
			c := w.cluster(obj)
			pod := w.makePod(memberPod(t, obj, "a"))
			if err := c.apply(t.Context(), plan.DeletePod{Name: "a", UID: pod.UID, Why: why, HeldUp: heldUp}); err != nil {
				t.Fatal(err)
			}
			singly := func() bool {
				w.watch()
				o, err := c.observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return o.JoinSingly
			}
			if got := singly(); got != heldUp {
				t.Errorf("the next pods are created one by one: %t, want %t", got, heldUp)
			}
			clock.Step(joinSinglyTime + time.Second)
			if singly() {
				t.Errorf("after %s the next pods are still created one by one", joinSinglyTime)
			}
		})
	}
}
