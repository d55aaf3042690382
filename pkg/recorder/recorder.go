// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recorder records all changes of an etcd cluster's data as segments of a log
// (pkg/changelog), until something ends it. It knows nothing of Kubernetes, nor of stores.
//
// It loses no revision in silence: revisions must follow each other, and a linearizable read
// shows which one must have come.
package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// Errors after which a log can't continue as it is.
var (
	// ErrOther means that the member has another history than the log.
	ErrOther = errors.New("the cluster has another history than its log")
	// ErrReplaced means that the member belongs to another cluster than before.
	ErrReplaced = errors.New("another cluster has taken its place")
	// ErrBehind means that the store took too little: what waits exceeds MaxWaiting or the Budget.
	ErrBehind = errors.New("the store takes less than etcd writes")
)

const (
	// MaxWaiting is how many bytes may wait for the store. A segment that is on its way there
	// comes on top. While a log catches up with what was written without it, the member waits too.
	MaxWaiting = 16 << 20
	// segmentBytes is when a segment is large enough to be stored before its time.
	segmentBytes = 4 << 20
	// heartbeat is the time between two segments while nothing changes.
	heartbeat = time.Minute
	// askLimit is how long a member may take for an answer, and then for the changes that the
	// answer announces.
	askLimit = 10 * time.Second
	// knownLeases is how many leases the recorder remembers. Beyond it, it asks again.
	knownLeases = 100_000
)

// Member is a member of the cluster.
type Member interface {
	// Position makes a linearizable read.
	Position(ctx context.Context) (etcd.Position, error)
	// Changes streams all changes from a revision on.
	Changes(ctx context.Context, from int64) (Stream, error)
	// LeaseTTL is the time to live that was granted, in seconds; 0: the lease has ended.
	LeaseTTL(ctx context.Context, id int64) (int64, error)
}

// Stream is a stream of changes.
type Stream interface {
	// Next waits for changes. All of a revision come at once.
	Next() ([]etcd.Change, error)
}

// Recorder records one cluster through one member.
type Recorder struct {
	Member Member
	// Cluster is the ID of the cluster.
	Cluster uint64
	// Since is Until of the log that Run continues; zero: a log begins.
	Since time.Time
	// Leases are those that the last segment of that log refers to and does not have: etcd may not have
	// answered. A later segment has them.
	Leases []int64
	// Lag is the intended time from a change to its segment in the store.
	Lag time.Duration
	// Store stores a segment. Its caller waits.
	Store func(context.Context, *changelog.Segment) error
	// Stored gets each segment that the store has.
	Stored func(*changelog.Segment)
	Hashes Hashes
	Clock  clock.Clock
	// Budget is that of all recorders of the process; nil: there is none.
	Budget *Budget
}

// Run records from the revision after last on. known is that last revision, if the log has it:
// the member must have the same one. Run ends with ctx, or with the first error. No goroutine
// of it is left then. The first segment may be empty: it shows that the log begins.
func (r *Recorder) Run(ctx context.Context, last int64, known *changelog.Revision) error {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := last + 1
	if known != nil {
		from = last
	}
	// The stream lives as long as its context, so no deadline can bound its begin.
	unconfirmed := fmt.Errorf("the member did not confirm the watch of its changes within %s; a proxy before it must not hold back streams", askLimit)
	limit := time.AfterFunc(askLimit, func() { cancel(unconfirmed) })
	stream, err := r.Member.Changes(ctx, from)
	limit.Stop()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	b := newBuffer(last, known, !r.Since.IsZero())
	b.budget, b.cancel = cmp.Or(r.Budget, NewBudget(math.MaxInt)), cancel
	b.budget.join(b)
	defer b.budget.leave(b)
	received := make(chan struct{})
	go func() {
		defer close(received)
		cancel(watchdog.Guard(func() error { return r.receive(ctx, stream, b) }))
	}()
	err = r.keepStoring(ctx, outer, b)
	if cause := context.Cause(ctx); cause != nil {
		err = cause // why the stream ended, or that of the caller
	}
	cancel(nil)
	<-received
	return err
}

// receive fills the buffer.
func (r *Recorder) receive(ctx context.Context, stream Stream, b *buffer) error {
	for {
		changes, err := stream.Next()
		if err != nil {
			return err
		}
		// Rounded down, it would be earlier than the write.
		if err := b.add(changes, r.Clock.Now().Add(time.Millisecond-1).Truncate(time.Millisecond)); err != nil {
			return err
		}
		b.budget.relieve()
		if err := b.awaitRoom(ctx); err != nil {
			return err
		}
	}
}

// keepStoring stores what comes. outer ends with the recording alone, and ctx with the stream too.
func (r *Recorder) keepStoring(ctx, outer context.Context, b *buffer) error {
	known := map[int64]bool{}
	checks := newCheckpoints(r.Hashes, r.Clock.Now())
	defer checks.end()
	until, before := r.Since, r.Leases
	beat := r.Clock.NewTimer(heartbeat) // the clock may be set back meanwhile
	defer func() { beat.Stop() }()
	due := true        // a log begins, or shows that it continues
	confirmed := false // the member has answered, and is one of the cluster
	for {
		pause := r.Clock.NewTimer(max(r.Lag/2, 100*time.Millisecond))
		s, err := r.next(ctx, b, until)
		if err != nil && confirmed {
			r.storeRest(outer, b, until, known, err)
		}
		if err != nil {
			return err
		}
		confirmed = true
		select {
		case <-beat.C():
			due = true
		default:
		}
		if len(s.Revisions) > 0 || due {
			leases := b.leases()
			if len(s.Revisions) > 0 { // a restore does not read one that a later one repeats
				leases, before = append(leases, before...), nil
				s.Checkpoint = checks.take()
			}
			// A quorum has committed it, and the stream may end meanwhile. Without an answer, a restore
			// gives the leases a time to live of its own.
			unanswered := r.addLeases(outer, leases, s, known)
			if err := r.Store(outer, s); err != nil {
				return err
			}
			b.stored()
			beat.Stop()
			beat = r.Clock.NewTimer(heartbeat)
			due, until = false, s.Until
			r.Stored(s)
			if unanswered != nil {
				r.storeRest(outer, b, until, known, unanswered)
				return unanswered
			}
			checks.askIfDue(ctx, r.Clock.Now(), s.Last)
		}
		select {
		case <-ctx.Done():
			r.storeRest(outer, b, until, known, context.Cause(ctx))
			return context.Cause(ctx)
		case <-b.large:
		case <-pause.C():
		}
		pause.Stop()
	}
}

// storeRest stores what the member sent before it failed: a quorum has committed that, and may be gone.
// Nobody knows what else there was, so the segment shows no later moment than the one before it.
func (r *Recorder) storeRest(ctx context.Context, b *buffer, until time.Time, known map[int64]bool, failure error) {
	switch {
	case ctx.Err() != nil, until.IsZero():
		return // the next recording continues, or no log has begun
	case errors.Is(failure, ErrReplaced):
		return // nobody knows whose changes these are
	}
	s := &changelog.Segment{Cluster: r.Cluster, Until: until}
	if s.First, s.Revisions, failure = b.take(); failure != nil || len(s.Revisions) == 0 {
		return
	}
	s.Last = s.First + int64(len(s.Revisions)) - 1
	_ = r.addLeases(ctx, b.leases(), s, known) // the next recording asks for those that are left
	if r.Store(ctx, s) == nil {
		r.Stored(s)
	}
}

// next takes what has come, and makes sure that everything has come that was acknowledged
// before it asked. While a log catches up, next takes a part, which shows no more than the segment
// before it: until.
func (r *Recorder) next(ctx context.Context, b *buffer, until time.Time) (*changelog.Segment, error) {
	asked := r.Clock.Now().Truncate(time.Millisecond)
	limited, cancel := context.WithTimeoutCause(ctx, askLimit, fmt.Errorf("the member did not answer within %s", askLimit))
	defer cancel()
	p, err := r.Member.Position(limited)
	switch {
	case err != nil && context.Cause(limited) != nil:
		return nil, context.Cause(limited)
	case err != nil:
		return nil, err
	case p.ClusterID != r.Cluster:
		return nil, fmt.Errorf("%w: the member belongs to the cluster %016x now", ErrReplaced, p.ClusterID)
	}
	whole, err := b.await(ctx, r.Clock, p.Revision)
	if err != nil {
		return nil, err
	}
	s := &changelog.Segment{Cluster: r.Cluster, Until: asked}
	if !whole {
		s.Until = until
	}
	if s.First, s.Revisions, err = b.take(); err != nil {
		return nil, err
	}
	s.Last = s.First + int64(len(s.Revisions)) - 1
	return s, nil
}

// addLeases adds the leases that no segment before has. After an error, some are left.
func (r *Recorder) addLeases(ctx context.Context, ids []int64, s *changelog.Segment, known map[int64]bool) error {
	if len(known) > knownLeases {
		clear(known)
	}
	for _, id := range ids {
		if known[id] {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, askLimit)
		ttl, err := r.Member.LeaseTTL(limited, id)
		cancel()
		if err != nil {
			return err
		}
		known[id] = true
		if ttl > 0 {
			s.Leases = append(s.Leases, changelog.Lease{ID: id, TTL: ttl})
		}
	}
	return nil
}
