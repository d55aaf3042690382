// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is the type of an operation.
type kind string

const (
	get    kind = "get"
	put    kind = "put"
	remove kind = "delete"
	// swap puts a value if the key has another one: a transaction.
	swap kind = "swap"
)

// An op is an operation that a client requested.
type op struct {
	kind     kind
	key      string
	old, new string // values; "" means that the key is absent
}

// An outcome is etcd's answer. Without an answer, nobody knows whether the operation took
// effect.
type outcome struct {
	unknown bool
	value   string // that get has read
	swapped bool
}

// A history is all operations of a cluster's clients.
type history struct {
	start time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

func newHistory() *history { return &history{start: time.Now()} }

// call notes that an operation begins. The returned function notes its end.
func (h *history) call(client int, o op) func(outcome) {
	called := time.Since(h.start)
	return func(out outcome) {
		if out.unknown && o.kind == get {
			return // no result
		}
		returned := time.Since(h.start).Nanoseconds()
		if out.unknown {
			returned = math.MaxInt64 // it may take effect at any later time, or never
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: o, Call: called.Nanoseconds(), Output: out, Return: returned})
	}
}

// read notes that a key was read at some time between two.
func (h *history) read(client int, key, value string, called, returned time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: client, Input: op{get, key, "", ""}, Call: called.Nanoseconds(), Output: outcome{value: value}, Return: returned.Nanoseconds(),
	})
}

// keys returns the keys of all operations.
func (h *history) keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := map[string]bool{}
	for _, o := range h.ops {
		keys[o.Input.(op).key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// count returns the number of operations, and of those without an answer.
func (h *history) count() (all, unknown int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.ops {
		if o.Output.(outcome).unknown {
			unknown++
		}
	}
	return len(h.ops), unknown
}

// model is one register for each key.
var model = porcupine.Model{
	Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range ops {
			key := o.Input.(op).key
			byKey[key] = append(byKey[key], o)
		}
		parts := make([][]porcupine.Operation, 0, len(byKey))
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		value, o, out := state.(string), input.(op), output.(outcome)
		switch o.kind {
		case get:
			return out.value == value, value
		case swap:
			made := value == o.old
			if !out.unknown && made != out.swapped {
				return false, value
			}
			if !made {
				return true, value
			}
		}
		return true, o.new
	},
	DescribeOperation: func(input, output any) string {
		o, out := input.(op), output.(outcome)
		return fmt.Sprintf("%s %s %q→%q: %+v", o.kind, o.key, o.old, o.new, out)
	},
}

// check returns an error if no order of the operations explains the answers.
func (h *history) check(patience time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, part := range model.Partition(h.ops) {
		if result := porcupine.CheckOperationsTimeout(model, part, patience); result != porcupine.Ok {
			return fmt.Errorf("the history of key %s is %s: %d operations%s", part[0].Input.(op).key, result, len(part), story(part))
		}
	}
	return nil
}

// story lists operations by their begin, unless there are too many to read.
func story(ops []porcupine.Operation) string {
	if len(ops) > 60 {
		return ""
	}
	ops = slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&b, "\n%v to %v, client %d: %s", time.Duration(o.Call), time.Duration(o.Return), o.ClientId, model.DescribeOperation(o.Input, o.Output))
	}
	return b.String()
}
