// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// buffer holds revisions until they are stored. One goroutine fills it, another one empties it.
type buffer struct {
	mu        sync.Mutex
	last      int64 // revision that was received
	at        time.Time
	waiting   []changelog.Revision
	size      int
	leaseIDs  map[int64]bool      // of the last take
	coming    map[int64]bool      // of what waits
	overlap   *changelog.Revision // that must come first; nil: none, or it has come
	excused   bool                // etcd may have compacted it
	beginning int64               // the first revision of the log
	parts     bool                // whether a part of what is announced may be taken
	announced int64               // revision that the member has; 0: it was not asked yet
	taken     int                 // bytes of the last take, on their way to the store
	dropped   error               // why nothing may be taken any more; nil: it may

	budget *Budget
	cancel context.CancelCauseFunc // ends the recording

	// more has an element after revisions were added, and large after they have exceeded
	// segmentBytes. room has one after something was taken, or announced.
	more, large, room chan struct{}
}

func newBuffer(last int64, known *changelog.Revision, parts bool) *buffer {
	return &buffer{
		last: last, overlap: known, beginning: last + 1, parts: parts, coming: map[int64]bool{},
		more: make(chan struct{}, 1), large: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// drop ends the recording, and frees what waits: the store may hang for minutes.
func (b *buffer) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropped == nil {
		b.dropped = fmt.Errorf("%w: %d bytes of changes wait for it, and those of all EtcdBackups together take too much memory", ErrBehind, b.size)
	}
	b.waiting, b.size = nil, 0
	b.budget.note(b, holding{0, b.taken})
	b.cancel(b.dropped)
}

// add adds changes that were received at a moment.
func (b *buffer) add(changes []etcd.Change, at time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropped != nil {
		return b.dropped
	}
	if at.Before(b.at) {
		at = b.at // the clock was set back
	}
	b.at = at
	for len(changes) > 0 {
		n := slices.IndexFunc(changes, func(c etcd.Change) bool { return c.Revision != changes[0].Revision })
		if n < 0 {
			n = len(changes)
		}
		if err := b.addRevision(changes[:n]); err != nil {
			b.dropped = err
			return err
		}
		changes = changes[n:]
	}
	b.budget.note(b, holding{b.size, b.taken})
	signal(b.more)
	if b.size > segmentBytes {
		signal(b.large)
	}
	return nil
}

// awaitRoom waits until no more than MaxWaiting bytes wait for the store. What the member had
// before it was asked last comes as fast as it can send, and one transaction of it may be larger. What
// it writes meanwhile must not pile up there: a watcher that takes too little costs etcd more than one
// that begins again.
func (b *buffer) awaitRoom(ctx context.Context) error {
	for {
		b.mu.Lock()
		size, catchesUp := b.size, b.parts && (b.announced == 0 || b.beginning <= b.announced)
		b.mu.Unlock()
		switch {
		case size <= MaxWaiting:
			return nil
		case !catchesUp:
			return fmt.Errorf("%w: %d bytes of changes wait for it", ErrBehind, size)
		}
		select {
		case <-b.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *buffer) addRevision(changes []etcd.Change) error {
	r := changelog.Revision{Main: changes[0].Revision, At: b.at}
	for _, c := range changes {
		r.Changes = append(r.Changes, changelog.Change{Tombstone: c.Tombstone, KeyValue: c.KeyValue})
	}
	if b.overlap != nil {
		known := b.overlap
		b.overlap = nil
		if r.Main == known.Main {
			if !r.Same(known) && !r.Same(withoutDeletions(known)) {
				return fmt.Errorf("%w: revision %d has other changes", ErrOther, r.Main)
			}
			return nil
		} // etcd has compacted it meanwhile
	}
	if r.Main != b.last+1 {
		return fmt.Errorf("%w: after revision %d the member sent %d", changelog.ErrGap, b.last, r.Main)
	}
	b.last = r.Main
	b.waiting = append(b.waiting, r)
	b.size += r.Size()
	for _, c := range changes {
		if c.Lease != 0 {
			b.coming[c.Lease] = true
		}
	}
	return nil
}

// await waits until a revision has been received. It returns false before that if the buffer may be
// taken in parts, and is large enough for one.
func (b *buffer) await(ctx context.Context, clk clock.Clock, revision int64) (whole bool, err error) {
	limit := clk.NewTimer(askLimit)
	defer limit.Stop()
	b.mu.Lock()
	b.announced = revision
	b.mu.Unlock()
	signal(b.room)
	for {
		b.mu.Lock()
		last, size, compared := b.last, b.size, b.overlap == nil || b.excused
		b.mu.Unlock()
		switch {
		case last >= revision && compared:
			return true, nil
		case b.parts && size > segmentBytes:
			return false, nil
		}
		select {
		case <-b.more:
		case <-limit.C():
			if b.excuse(revision) {
				return true, nil
			}
			return false, fmt.Errorf("the member did not send the changes up to revision %d within %s, only up to %d", revision, askLimit, last)
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// excuse reports whether only the overlap has not come, and may have been compacted.
func (b *buffer) excuse(revision int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.excused = b.last >= revision && b.overlap != nil && len(withoutDeletions(b.overlap).Changes) == 0
	return b.excused
}

// withoutDeletions is what a compaction at a revision leaves of it, before etcd 3.5.16 and 3.4.34 (etcd pull
// request 18274).
func withoutDeletions(r *changelog.Revision) *changelog.Revision {
	left := &changelog.Revision{Main: r.Main}
	for _, c := range r.Changes {
		if !c.Tombstone {
			left.Changes = append(left.Changes, c)
		}
	}
	return left
}

// take empties the buffer. first is the revision of the first one, or the one to come. After drop, nobody may
// take the empty buffer for an etcd without changes. After an error of add, nobody knows whose changes the
// buffer has. The recording ends only when its receiver has returned that error.
func (b *buffer) take() (first int64, revisions []changelog.Revision, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropped != nil {
		return 0, nil, b.dropped
	}
	b.taken = b.size
	b.budget.note(b, holding{0, b.taken})
	revisions, b.waiting, b.size = b.waiting, nil, 0
	b.leaseIDs, b.coming = b.coming, map[int64]bool{}
	first = b.beginning
	b.beginning = b.last + 1
	signal(b.room)
	return first, revisions, nil
}

// stored notes that nothing of the last take is in memory any more.
func (b *buffer) stored() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = 0
	b.budget.note(b, holding{b.size, 0})
}

// leases are those of what was taken last, in a fixed order.
func (b *buffer) leases() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]int64, 0, len(b.leaseIDs))
	for id := range b.leaseIDs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
