// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// Hashes says when and how a recorder asks etcd for the hash of its keys. A member that answers
// reads its whole database, and applies no writes meanwhile.
type Hashes struct {
	// Ask asks a member for the hash at a revision; nil: the recorder never asks.
	Ask func(ctx context.Context, revision int64) (changelog.Checkpoint, error)
	// First is the time from the begin to the first question, and Every that from one to the
	// next. Nothing is asked twice about the same revision.
	First, Every time.Duration
}

// checkpoints asks beside the recording. All fields belong to the goroutine that stores.
type checkpoints struct {
	Hashes
	due      time.Time
	revision int64                      // that was asked for last
	answer   chan *changelog.Checkpoint // nil: no question is under way
	cancel   context.CancelFunc
}

// newCheckpoints begins at a moment.
func newCheckpoints(h Hashes, now time.Time) *checkpoints {
	return &checkpoints{Hashes: h, due: now.Add(h.First)}
}

// askIfDue asks about a revision that is stored.
func (c *checkpoints) askIfDue(ctx context.Context, now time.Time, revision int64) {
	if c.Ask == nil || c.answer != nil || now.Before(c.due) || revision <= c.revision || revision == 0 {
		return
	}
	c.due, c.revision = now.Add(c.Every), revision
	ctx, c.cancel = context.WithCancel(ctx)
	answer := make(chan *changelog.Checkpoint, 1)
	c.answer = answer
	go func() {
		got, err := c.Ask(ctx, revision)
		if err != nil {
			answer <- nil // the next one may succeed: it is of a later revision
			return
		}
		answer <- &got
	}()
}

// take returns an answer that has come; nil: none has.
func (c *checkpoints) take() (got *changelog.Checkpoint) {
	select {
	case got = <-c.answer:
		c.cancel()
		c.answer = nil
	default:
	}
	return got
}

// end waits until nothing is under way.
func (c *checkpoints) end() {
	if c.answer != nil {
		c.cancel()
		<-c.answer
	}
}
