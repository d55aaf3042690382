// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Nobody asks again about a pod that is gone for good. The note about it stayed forever.
func TestWhatIsPutOffNoLongerIsForgotten(t *testing.T) {
	obj := testCluster()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	c.postponed.put("look for pod gone", noon)
	c.postponed.put("look for pod lost", noon.Add(time.Second))
	if _, err := c.observe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.postponed) != 1 || !c.postponed.holds("look for pod lost", noon) {
		t.Errorf("put off: %v", c.postponed)
	}
}
