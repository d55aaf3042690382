// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"sync"
)

// Slots limits how many callers work at the same time. While all slots are taken, namespaces take
// turns, and callers of one namespace are served in their order.
type Slots struct {
	mu    sync.Mutex
	free  int
	queue queue
}

// NewSlots returns n slots.
func NewSlots(n int) *Slots { return &Slots{free: n, queue: newQueue()} }

// Take returns when the caller has a slot, which it must give back by Free, or the error of the
// context that ended before. The context names the namespace; see In.
func (s *Slots) Take(ctx context.Context) error { return pass(ctx, s) }

// Free gives a slot back.
func (s *Slots) Free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hand()
}

// enter returns the channel that closes when the caller has a slot; nil: it has one.
func (s *Slots) enter(namespace string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		return nil
	}
	return s.queue.add(namespace)
}

// leave removes a caller who no longer waits. If its turn came at the same moment, the next caller
// gets the slot.
func (s *Slots) leave(namespace string, turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queue.leave(namespace, turn) {
		s.hand()
	}
}

// hand gives a slot to the next caller.
func (s *Slots) hand() {
	if s.queue.empty() {
		s.free++
		return
	}
	close(s.queue.next())
}
