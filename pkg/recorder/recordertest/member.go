// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recordertest has a member of etcd for tests of what records changes.
package recordertest

import (
	"bytes"
	"cmp"
	"context"
	"sync"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
)

// Member is a member with a history of one change for each revision. Its methods may be called
// by several goroutines.
type Member struct {
	mu        sync.Mutex
	changed   chan struct{} // closed with each write
	history   []etcd.Change // from revision 1 on
	cluster   uint64
	compacted int64
	lost      int64
	large     int64
	down      error
	unknown   error // of leases
	leases    int
}

// New returns a member of a cluster without data.
func New(cluster uint64) *Member {
	return &Member{cluster: cluster, changed: make(chan struct{})}
}

// Write makes revisions with changes of a size in bytes, which refer to a lease; 0: to none.
func (m *Member) Write(revisions, size int, lease int64) {
	m.set(func() {
		for range revisions {
			number := len(m.history)
			m.history = append(m.history, etcd.Change{Revision: int64(number) + 1, KeyValue: bytes.Repeat([]byte{byte(number)}, size), Lease: lease})
		}
	})
}

// Lose makes the member send all changes but those of a revision.
func (m *Member) Lose(revision int64) { m.set(func() { m.lost = revision }) }

// Swell makes the changes of a revision more than a stream takes.
func (m *Member) Swell(revision int64) { m.set(func() { m.large = revision }) }

// Compact removes the history before a revision.
func (m *Member) Compact(revision int64) { m.set(func() { m.compacted = revision }) }

// Replace makes it the member of another cluster, with so many revisions.
func (m *Member) Replace(cluster uint64, revisions int) {
	m.set(func() { m.cluster, m.history, m.compacted = cluster, nil, 0 })
	m.Write(revisions, 5, 0)
}

// Swap makes it the member of another history, until somebody calls back.
func (m *Member) Swap(cluster uint64, revisions int) (back func()) {
	m.mu.Lock()
	before, history, compacted := m.cluster, m.history, m.compacted
	m.mu.Unlock()
	m.Replace(cluster, revisions)
	return func() { m.set(func() { m.cluster, m.history, m.compacted = before, history, compacted }) }
}

// Fail makes all calls and streams fail; nil: they work again.
func (m *Member) Fail(err error) { m.set(func() { m.down = err }) }

// FailLeases makes calls for leases fail; nil: they work again.
func (m *Member) FailLeases(err error) { m.set(func() { m.unknown = err }) }

func (m *Member) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Content returns the change of a revision.
func (m *Member) Content(revision int64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.history[revision-1].KeyValue
}

// Asked returns for how many leases somebody has asked.
func (m *Member) Asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases
}

// Position is the newest revision.
func (m *Member) Position(context.Context) (etcd.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return etcd.Position{ClusterID: m.cluster, Revision: int64(len(m.history))}, m.down
}

// LeaseTTL is ten times the ID.
func (m *Member) LeaseTTL(_ context.Context, id int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leases++
	return id * 10, cmp.Or(m.down, m.unknown)
}

// Changes streams the history, ten revisions at once.
func (m *Member) Changes(ctx context.Context, from int64) (recorder.Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.down != nil:
		return nil, m.down
	case from < m.compacted:
		return nil, etcd.CompactedError{Revision: m.compacted}
	}
	return &stream{m, ctx, m.cluster, from}, nil
}

type stream struct {
	*Member
	ctx     context.Context //nolint:containedctx // as that of gRPC
	cluster uint64
	next    int64
}

// Next waits for changes.
func (s *stream) Next() ([]etcd.Change, error) {
	const atOnce = 10
	for {
		s.mu.Lock()
		var some []etcd.Change
		for s.next <= int64(len(s.history)) && len(some) < atOnce && s.cluster == s.Member.cluster && s.next != s.large {
			if s.next != s.lost {
				some = append(some, s.history[s.next-1])
			}
			s.next++
		}
		down, changed, large := s.down, s.changed, s.next == s.large && s.next <= int64(len(s.history))
		s.mu.Unlock()
		switch {
		case down != nil:
			return nil, down
		case len(some) > 0:
			return some, nil
		case large:
			return nil, etcd.TooLargeError{Revision: s.large}
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return nil, context.Cause(s.ctx)
		}
	}
}
