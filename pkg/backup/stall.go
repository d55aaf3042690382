// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// stallLimit is for how long an attempt may move nothing. The time that a user
	// allows for an attempt may be hours, and each holds one of a few slots.
	stallLimit = 2 * time.Minute
	// stallLook is from one look at what has moved to the next.
	stallLook = stallLimit / 12
)

// errStalled ends an attempt in which nothing moves.
var errStalled = errors.New("nothing has moved")

// progress is how far an attempt has come. Those who make it come on write it.
type progress struct {
	moved    atomic.Int64 // bytes that were read from etcd, or exchanged with the store
	expected atomic.Int64 // bytes of the snapshot, -1: unknown
	read     atomic.Int64 // bytes of it that were read
	begun    atomic.Bool  // the snapshot is there to be read
	waiting  atomic.Bool  // etcd is to send more of it
	whole    atomic.Bool  // it was read to its end
	// stalled is for people who has not moved. It is written before a context ends
	// with errStalled.
	stalled string
}

// watched returns a context that ends with errStalled when nothing has moved for
// stallLimit, and what stops the watch and waits for its end.
func (p *progress) watched(ctx context.Context, clk clock.Clock) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	began := clk.Now()
	timer := clk.NewTimer(stallLook)
	watching.Go(func() {
		defer timer.Stop()
		moved, last, limit := int64(0), began, stallLimit
		for whole := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-timer.C():
			}
			now := clk.Now()
			if n := p.moved.Load(); n != moved {
				moved, last = n, now
			}
			if p.whole.Load() && !whole {
				// A store may have to put together what it has, or to wait for a disk:
				// that takes the longer, the more it is.
				whole, limit = true, max(stallLimit, now.Sub(began))
			}
			if now.Sub(last) >= limit {
				p.stalled = p.who()
				cancel(errStalled)
				return
			}
			timer.Reset(stallLook)
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
	}
}

// far tells people how far it has come.
func (p *progress) far() string {
	if !p.begun.Load() {
		return "and etcd had not even begun to send"
	}
	return fmt.Sprintf("with %s of %s read", notice.Bytes(p.read.Load()), notice.Bytes(p.expected.Load()))
}

// who tells people who has not moved.
func (p *progress) who() string {
	switch {
	case p.waiting.Load():
		return "etcd has sent nothing"
	case p.begun.Load():
		return "the store has taken nothing"
	}
	return "nobody has answered"
}
