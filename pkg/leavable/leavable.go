// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leavable does work that may hang in a call to the system, which no context
// ends: the server of a volume may be gone.
package leavable

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Patience is for how long work may go on when its context has ended, such as to remove
// from a store what was sent.
const Patience = 30 * time.Second

// Do does work and returns its result. Where work has not returned when its context has
// been over for Patience, it is left to itself; the channel is closed when it has
// returned, and nil where it has. Nothing should be begun until then that does the same.
func Do[T any](ctx context.Context, clk clock.Clock, work func() T) (result T, left <-chan struct{}) {
	returned, got := make(chan struct{}), make(chan T, 1)
	go func() {
		defer close(returned)
		got <- work()
	}()
	select {
	case <-returned:
		return <-got, nil
	case <-ctx.Done():
	}
	timer := clk.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-returned:
		return <-got, nil
	case <-timer.C():
		return result, returned
	}
}
