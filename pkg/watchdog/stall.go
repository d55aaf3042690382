// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// StallTimeout is how long work may make no progress. The time that a user allows for
	// the whole work may be hours, and others may wait for it.
	StallTimeout = 2 * time.Minute
	// StallInterval is the time between two looks at the progress.
	StallInterval = StallTimeout / 12
)

// Progress shows how far work is. Another goroutine than that of the work reads it.
type Progress struct {
	// Moved returns a number that grows with the work.
	Moved func() int64
	// Complete reports whether a store has all bytes, and only has to finish; nil: never.
	Complete func() bool
	// Stalled returns the cause with which the context of stalled work ends.
	Stalled func() error
}

// WithStallTimeout returns a context that ends when work makes no progress for StallTimeout.
// stop ends the watch and waits for its goroutine.
//
// A store may need longer to finish, the more it has received. From then on the timeout is
// the time since the beginning, if that is longer.
func WithStallTimeout(ctx context.Context, clk clock.Clock, p Progress) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	began, timer := clk.Now(), clk.NewTimer(StallInterval)
	watching.Go(func() {
		defer timer.Stop()
		moved, last, timeout := int64(0), began, StallTimeout
		for complete := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-timer.C():
			}
			now := clk.Now()
			if n := p.Moved(); n != moved {
				moved, last = n, now
			}
			if !complete && p.Complete != nil && p.Complete() {
				complete, timeout = true, max(StallTimeout, now.Sub(began))
			}
			if now.Sub(last) >= timeout {
				cancel(p.Stalled())
				return
			}
			timer.Reset(StallInterval)
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
	}
}
