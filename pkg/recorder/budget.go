// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import "sync"

// Budget bounds the bytes of changes that all recorders of a process hold. Beyond it, the recorder of which
// most bytes wait for its store ends with ErrBehind, and what waits is dropped: a log continues where its
// store has its end. One with less than an equal share never ends so. Together, the recorders hold less than
// twice the budget, plus what one answer of a member brings.
type Budget struct {
	bytes int

	// Who holds mu takes no lock of a buffer.
	mu   sync.Mutex
	held int
	of   map[*buffer]holding
}

// holding is the bytes that wait in a buffer, and those that are on their way from it to a store.
type holding struct{ waiting, taken int }

// NewBudget returns a Budget of so many bytes.
func NewBudget(bytes int) *Budget { return &Budget{bytes: bytes, of: map[*buffer]holding{}} }

func (g *Budget) join(b *buffer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[b] = holding{}
}

// note notes what a buffer holds, if it has not left.
func (g *Budget) note(b *buffer, h holding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if before, joined := g.of[b]; joined {
		g.held += h.waiting + h.taken - before.waiting - before.taken
		g.of[b] = h
	}
}

func (g *Budget) leave(b *buffer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.of[b]
	g.held -= h.waiting + h.taken
	delete(g.of, b)
}

// relieve drops what waits in the largest buffers while all together hold too much. The caller holds no
// lock of a buffer.
func (g *Budget) relieve() {
	for b := g.largest(); b != nil; b = g.largest() {
		b.drop()
	}
}

// largest returns the buffer that has to end; nil: none has.
func (g *Budget) largest() (b *buffer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held <= g.bytes {
		return nil
	}
	most := g.bytes / len(g.of)
	for each, h := range g.of {
		if h.waiting > most {
			b, most = each, h.waiting
		}
	}
	return b
}
