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
	mu           sync.Mutex
	limit, taken int
	queue        queue
}

// NewSlots returns n slots.
func NewSlots(n int) *Slots { return &Slots{limit: n, queue: newQueue()} }

// Take returns when the caller has a slot, which it must give back by Free, or the error of the
// context that ended before. The context names the namespace; see In.
func (s *Slots) Take(ctx context.Context) error { return pass(ctx, s) }

// Free gives a slot back.
func (s *Slots) Free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.hand()
}

// Resize changes the number of slots, which depends on the present one and on whether callers wait.
// Callers that have a slot keep it. It returns the new number.
func (s *Slots) Resize(to func(n int, scarce bool) int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = to(s.limit, !s.queue.empty())
	s.hand()
	return s.limit
}

// enter returns the channel that closes when the caller has a slot; nil: it has one.
func (s *Slots) enter(namespace string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken < s.limit {
		s.taken++
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
		s.taken--
		s.hand()
	}
}

// hand gives the free slots to the next callers.
func (s *Slots) hand() {
	for s.taken < s.limit && !s.queue.empty() {
		s.taken++
		close(s.queue.next())
	}
}
