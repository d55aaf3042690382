// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// GracePeriod is how long work may continue after the end of its context, for example to
// remove an upload from a store.
const GracePeriod = 30 * time.Second

// Run runs work and returns its result. Work can hang in a system call that no context ends,
// because the server of a volume is gone. If work has not returned GracePeriod after the end
// of its context, Run abandons it and returns a channel that closes when work returns.
// Otherwise the channel is nil. Until it closes, nobody should start the same work again.
func Run[T any](ctx context.Context, clk clock.Clock, work func() T) (result T, abandoned <-chan struct{}) {
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
	timer := clk.NewTimer(GracePeriod)
	defer timer.Stop()
	select {
	case <-returned:
		return <-got, nil
	case <-timer.C():
		return result, returned
	}
}
