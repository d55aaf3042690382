// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leavable runs work that may hang in a system call that no context ends: the server
// of a volume may be gone.
package leavable

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Patience is how long work may continue after the end of its context, for example to remove
// an upload from a store.
const Patience = 30 * time.Second

// Do runs work and returns its result. If work has not returned Patience after the end of its
// context, Do abandons it and returns a channel that closes when work returns. Otherwise the
// channel is nil. Until it closes, nobody should start the same work again.
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
