//go:build !race

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
)

var simulations = flag.Int("simulations", 10, "number of lives that TestSimulatedLives plays")

// TestSimulatedLives plays random lives of backups on schedules. With the race detector, they would
// take seven times as long.
func TestSimulatedLives(t *testing.T) {
	for seed := range *simulations {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newLife(t, uint64(seed)).play() })
		})
	}
}
