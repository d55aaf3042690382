// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "sync"

// hooks are called with each change of an object of a kind, in order. They must not block. The
// zero value has none.
type hooks[T any] struct {
	mu   sync.Mutex
	next int
	list map[int]func(T)
}

// add adds a hook until it is released.
func (h *hooks[T]) add(hook func(T)) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.list == nil {
		h.list = map[int]func(T){}
	}
	id := h.next
	h.next++
	h.list[id] = hook
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.list, id)
	}
}

func (h *hooks[T]) call(obj T) {
	h.mu.Lock()
	list := make([]func(T), 0, len(h.list))
	for _, hook := range h.list {
		list = append(list, hook)
	}
	h.mu.Unlock()
	for _, hook := range list {
		hook(obj)
	}
}
