//go:build !race

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// The allocations of a pass do not vary with the machine, nor with the neighbours. With the race detector,
// pools of objects forget some of them at random.
func TestAnIdlePassAllocatesLittle(t *testing.T) {
	const most = 960
	pass := func(others int) float64 {
		c := idleCluster(t, others)
		return testing.AllocsPerRun(20, func() {
			if _, err := c.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
	alone, beside := pass(0), pass(300)
	if alone > most || beside > alone*1.02 {
		t.Errorf("a pass allocates %.0f times, and %.0f times beside 300 clusters; want at most %d", alone, beside, most)
	}
}
