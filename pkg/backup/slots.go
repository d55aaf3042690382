// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"sync"
)

// slots is how many attempts may be under way in a process. Each holds some parts
// of an upload in memory.
const slots = 8

// Slots bound the attempts that are under way at once. All backups of a process
// share them.
type Slots chan struct{}

// NewSlots returns as many as an operator should have.
func NewSlots() Slots { return make(Slots, slots) }

// claim is a place in the queue for a slot: the first to come is the first to get
// one.
type claim struct {
	granted chan struct{} // gets one value, with which the slot belongs to the receiver
	drop    func()        // gives the place up, and the slot if nobody has received it
}

func (s Slots) claim(ctx context.Context) *claim {
	ctx, cancel := context.WithCancel(ctx)
	c := &claim{granted: make(chan struct{})}
	var queueing sync.WaitGroup
	queueing.Go(func() {
		select {
		case s <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case c.granted <- struct{}{}:
		case <-ctx.Done():
			<-s
		}
	})
	c.drop = func() {
		cancel()
		queueing.Wait()
	}
	return c
}
