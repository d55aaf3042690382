//go:build !race

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"flag"
	"fmt"
	"testing"
)

var simulations = flag.Int("simulations", 100, "number of lives that TestSimulatedLives plays")

// TestSimulatedLives plays random lives of clusters against a model of Kubernetes and etcd.
// Pods start slowly, die and crash, users edit the spec, and the operator itself dies before or
// after any step. The operator must never take the quorum itself, and never bootstrap twice.
// After the trouble, the cluster must match its spec. A life has one goroutine: there is no race to
// detect.
func TestSimulatedLives(t *testing.T) {
	for seed := range *simulations {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			play(t, uint64(seed))
		})
	}
}
