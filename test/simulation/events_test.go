// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// event is something that happens at a time.
type event struct {
	at    time.Duration // since the world began
	order uint64
	do    func()
}

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// events is a heap. Events of the same time happen in the order in which they were scheduled.
// A life has tens of thousands of events, so container/heap and its interfaces would cost.
type events struct {
	heap []event
	made uint64 // events so far
}

func (e *events) Len() int { return len(e.heap) }

// first returns the time of the next event.
func (e *events) first() time.Duration { return e.heap[0].at }

func (e *events) push(at time.Duration, do func()) {
	e.made++
	e.heap = append(e.heap, event{})
	h, i, next := e.heap, len(e.heap)-1, event{at, e.made, do}
	for i > 0 {
		parent := (i - 1) / 2
		if !next.before(&h[parent]) {
			break
		}
		h[i], i = h[parent], parent
	}
	h[i] = next
}

// pop removes the next event, and returns what it does.
func (e *events) pop() func() {
	first, last := e.heap[0].do, e.heap[len(e.heap)-1]
	e.heap[len(e.heap)-1] = event{}
	e.heap = e.heap[:len(e.heap)-1]
	h, i := e.heap, 0
	for len(h) > 0 {
		child := 2*i + 1
		if child >= len(h) {
			h[i] = last
			break
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if last.before(&h[child]) {
			h[i] = last
			break
		}
		h[i], i = h[child], child
	}
	return first
}
