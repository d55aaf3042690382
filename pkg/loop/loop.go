// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Reconciler is what a kind of object brings to the loop. The goroutine of Run calls its
// functions.
type Reconciler[T any] struct {
	// Take replaces the object with a newer state.
	Take func(obj T)
	// Woken precedes the pass that a wake starts; nil: nothing does.
	Woken func()
	// Pass makes one pass and returns how long the next one may wait.
	Pass func(ctx context.Context) time.Duration
}

// Run makes passes until ctx ends. The first begins at once. A pass sees every update and
// every wake that precedes it, so one pass can answer several of them.
func Run[T Object[T]](ctx context.Context, clk clock.Clock, m *Mailbox[T], r Reconciler[T]) {
	woken := func() {
		if r.Woken != nil {
			r.Woken()
		}
	}
	timer := clk.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case obj := <-m.updates:
			r.Take(obj)
		case <-m.wake:
			woken()
		case <-timer.C():
		}
		if ctx.Err() != nil { // the select above picks any of those that are ready
			return
		}
		select { // an edit can change the step of this pass
		case obj := <-m.updates:
			r.Take(obj)
		default:
		}
		select {
		case <-m.wake:
			woken()
		default:
		}
		next := r.Pass(ctx)
		if !timer.Stop() {
			select {
			case <-timer.C():
			default:
			}
		}
		timer.Reset(next)
	}
}
