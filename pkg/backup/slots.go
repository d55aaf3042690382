// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"sync"

	"github.com/etcd-operator/etcd-operator/pkg/loop"
)

const (
	// slots is how many attempts may be under way in a process. Each holds some
	// parts of an upload in memory.
	slots = 8
	// share is how many of them one namespace may have where there are others: its
	// backups may take for as long as they are allowed to.
	share = 4
)

// Slots bound the attempts that are under way at once. All backups of a process
// share them.
type Slots struct {
	all chan struct{}
	// each is how many a namespace may have; 0: all.
	each int

	mu     sync.Mutex
	shares map[string]chan struct{} // by namespace
}

// NewSlots returns as many as an operator should have, of which one namespace gets
// no more than half if the operator manages all namespaces.
func NewSlots(clusterWide bool) *Slots {
	s := &Slots{all: make(chan struct{}, slots), shares: map[string]chan struct{}{}}
	if clusterWide {
		s.each = share
	}
	return s
}

// of is the share of a namespace. Those that were are kept: they are small.
func (s *Slots) of(namespace string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, found := s.shares[namespace]
	if !found {
		size := cap(s.all)
		if s.each > 0 {
			size = s.each
		}
		c = make(chan struct{}, size)
		s.shares[namespace] = c
	}
	return c
}

// free reports whether a namespace would get a slot at once.
func (s *Slots) free(namespace string) bool {
	own := s.of(namespace)
	return len(s.all) < cap(s.all) && len(own) < cap(own)
}

// release gives back a slot of a namespace.
func (s *Slots) release(namespace string) {
	<-s.all
	<-s.of(namespace)
}

// claim is a place in the queue for a slot: the first to come is the first to get
// one. Its owner alone calls its methods.
type claim struct {
	granted <-chan struct{} // closes when the claim has a slot
	taken   bool            // its owner releases the slot
	drop    func()          // gives the place up, and the slot unless it is taken
}

// isGranted reports whether the claim has a slot.
func (c *claim) isGranted() bool { return c != nil && loop.Closed(c.granted) }

// take takes the slot, if there is one. The caller has to release it.
func (c *claim) take() bool {
	c.taken = c.taken || c.isGranted()
	return c.taken
}

// claim queues for a slot, and calls granted when it has one.
func (s *Slots) claim(ctx context.Context, namespace string, wake func()) *claim {
	ctx, cancel := context.WithCancel(ctx)
	granted := make(chan struct{})
	c := &claim{granted: granted}
	own := s.of(namespace)
	var queueing sync.WaitGroup
	queueing.Go(func() {
		select { // who waits for the share of the namespace blocks nobody else
		case own <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case s.all <- struct{}{}:
		case <-ctx.Done():
			<-own
			return
		}
		close(granted)
		wake()
	})
	c.drop = func() {
		cancel()
		queueing.Wait()
		if c.isGranted() && !c.taken {
			s.release(namespace)
		}
	}
	return c
}
