// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"slices"
)

// gate is what callers wait at. enter returns the channel that closes when the caller may pass; nil: at once.
// leave removes a caller who no longer waits.
type gate interface {
	enter(namespace string) chan struct{}
	leave(namespace string, turn chan struct{})
}

// pass returns when the caller may pass the gate, or the error of the context that ended before.
func pass(ctx context.Context, g gate) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	namespace := namespaceOf(ctx)
	turn := g.enter(namespace)
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.leave(namespace, turn)
		return ctx.Err()
	}
}

// queue holds callers who wait. Namespaces take turns, and callers of one namespace keep their
// order.
type queue struct {
	// turns are the namespaces with waiting callers; the first one is next.
	turns   []string
	waiting map[string][]chan struct{}
}

func newQueue() queue { return queue{waiting: map[string][]chan struct{}{}} }

func (q *queue) empty() bool { return len(q.turns) == 0 }

// add returns the channel that closes when the caller's turn comes.
func (q *queue) add(namespace string) chan struct{} {
	turn := make(chan struct{})
	if len(q.waiting[namespace]) == 0 {
		q.turns = append(q.turns, namespace)
	}
	q.waiting[namespace] = append(q.waiting[namespace], turn)
	return turn
}

// next removes the caller whose turn it is. Its namespace goes to the end.
func (q *queue) next() chan struct{} {
	namespace := q.turns[0]
	turn := q.waiting[namespace][0]
	q.turns = q.turns[1:]
	if rest := q.waiting[namespace][1:]; len(rest) > 0 {
		q.waiting[namespace] = rest
		q.turns = append(q.turns, namespace)
	} else {
		delete(q.waiting, namespace)
	}
	return turn
}

// leave removes a caller who no longer waits, and reports whether it still did: its turn may have
// come at the same moment.
func (q *queue) leave(namespace string, turn chan struct{}) bool {
	rest := q.waiting[namespace]
	i := slices.Index(rest, turn)
	if i < 0 {
		return false
	}
	if rest = slices.Delete(rest, i, i+1); len(rest) > 0 {
		q.waiting[namespace] = rest
		return true
	}
	delete(q.waiting, namespace)
	q.turns = slices.DeleteFunc(q.turns, func(n string) bool { return n == namespace })
	return true
}
