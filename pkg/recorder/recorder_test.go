// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// fake is a member with a history, and a store.
type fake struct {
	mu       sync.Mutex
	history  []etcd.Change // one for each revision from 1 on
	lose     int64         // a revision that it does not send; 0: none
	cluster  uint64
	changed  chan struct{}
	segments []*changelog.Segment
	hang     bool // the store
	asked    int
}

func newFake() *fake { return &fake{cluster: 7, changed: make(chan struct{}, 1)} }

func (f *fake) write(n, size int, lease int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.history = append(f.history, etcd.Change{Revision: int64(len(f.history)) + 1, KeyValue: bytes.Repeat([]byte{byte(len(f.history))}, size), Lease: lease})
	}
	signal(f.changed)
}

func (f *fake) Position(context.Context) (etcd.Position, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return etcd.Position{ClusterID: f.cluster, Revision: int64(len(f.history))}, nil
}

func (f *fake) LeaseTTL(_ context.Context, id int64) (int64, error) {
	f.asked++
	return id * 10, nil
}

func (f *fake) Changes(ctx context.Context, from int64) (Stream, error) {
	return &fakeStream{f, ctx, from}, nil
}

type fakeStream struct {
	*fake
	ctx  context.Context
	next int64
}

func (s *fakeStream) Next() ([]etcd.Change, error) {
	for {
		s.mu.Lock()
		var some []etcd.Change
		for s.next <= int64(len(s.history)) && len(some) < 10 {
			if s.next != s.lose {
				some = append(some, s.history[s.next-1])
			}
			s.next++
		}
		s.mu.Unlock()
		if len(some) > 0 {
			return some, nil
		}
		select {
		case <-s.changed:
		case <-s.ctx.Done():
			return nil, context.Cause(s.ctx)
		}
	}
}

func (f *fake) store(ctx context.Context, s *changelog.Segment) error {
	if f.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	text, err := s.Encode()
	if err != nil {
		return err
	}
	if s, err = changelog.Decode(text); err == nil {
		f.segments = append(f.segments, s)
	}
	return err
}

func (f *fake) recorder() *Recorder {
	return &Recorder{Member: f, Cluster: 7, Lag: 5 * time.Second, Store: f.store, Stored: func(*changelog.Segment) {}, Clock: clock.RealClock{}}
}

var errEnough = errors.New("enough")

// during runs a recorder beside a story. It returns how the recorder ended.
func (f *fake) during(t *testing.T, last int64, known *changelog.Revision, story func()) (err error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = f.recorder().Run(ctx, last, known)
	}()
	story()
	cancel(errEnough)
	<-done
	return err
}

// replayed checks that the segments continue a revision without a gap, and returns the last.
func (f *fake) replayed(t *testing.T, from int64) changelog.Replay {
	t.Helper()
	r := changelog.Replay{Last: from}
	for _, s := range f.segments {
		fresh, err := r.Add(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, revision := range fresh {
			if !bytes.Equal(revision.Changes[0].KeyValue, f.history[revision.Main-1].KeyValue) {
				t.Errorf("revision %d has another change", revision.Main)
			}
		}
	}
	return r
}

func TestEachRevisionIsStoredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.write(20, 10, 0)
		rng := rand.New(rand.NewPCG(1, 1))
		err := f.during(t, 20, nil, func() {
			for range 200 {
				f.write(rng.IntN(50), 100, int64(1+rng.IntN(5)))
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
		})
		r := f.replayed(t, 20)
		if !errors.Is(err, errEnough) || r.Last != int64(len(f.history)) {
			t.Errorf("it ended with %v, at revision %d of %d", err, r.Last, len(f.history))
		}
		if first := f.segments[0]; first.First != 21 {
			t.Errorf("the log begins with %d", first.First)
		}
		for _, s := range f.segments {
			for _, revision := range s.Revisions {
				if wait := s.Until.Sub(revision.At); wait > 5*time.Second {
					t.Errorf("revision %d waited for %s", revision.Main, wait)
				}
			}
		}
		leases := map[int64]int{}
		for _, s := range f.segments {
			for _, l := range s.Leases {
				leases[l.ID]++
				if l.TTL != l.ID*10 || leases[l.ID] > 1 {
					t.Errorf("a lease %+v", l)
				}
			}
		}
		if len(leases) != 5 || f.asked != 5 {
			t.Errorf("%d leases, asked %d times", len(leases), f.asked)
		}
	})
}

func TestWithoutChangesThereIsASegmentAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.write(20, 10, 0)
		_ = f.during(t, 20, nil, func() { time.Sleep(time.Hour) })
		if n := len(f.segments); n < 58 || n > 61 {
			t.Errorf("%d segments in an hour", n)
		}
		if r := f.replayed(t, 20); r.Last != 20 || time.Since(r.Until) > 70*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

func TestALostRevisionEndsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.lose = 25
		f.write(20, 10, 0)
		err := f.during(t, 20, nil, func() {
			f.write(4, 10, 0)
			time.Sleep(10 * time.Second)
			f.write(4, 10, 0)
			time.Sleep(10 * time.Second)
		})
		if r := f.replayed(t, 20); !errors.Is(err, changelog.ErrGap) || r.Last != 24 {
			t.Errorf("%v at %d", err, r.Last)
		}
	})
}

// The last revision is lost: nothing comes after it that would show the gap.
func TestAMemberThatSendsTooLittleIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.write(20, 10, 0)
		f.lose = 22
		err := f.during(t, 20, nil, func() {
			f.write(2, 10, 0)
			time.Sleep(time.Minute)
		})
		if err == nil || errors.Is(err, errEnough) || f.replayed(t, 20).Until.After(time.Now().Add(-50*time.Second)) {
			t.Errorf("%v, and the log claims %+v", err, f.replayed(t, 20))
		}
	})
}

func TestTheMemoryForAStoreThatHangsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.hang = true
		err := f.during(t, 0, nil, func() {
			for range 40 {
				f.write(100, 10_000, 0)
				time.Sleep(time.Second)
			}
		})
		if !errors.Is(err, ErrBehind) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestALogContinuesOnlyItsOwnHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.write(20, 10, 0)
		known := &changelog.Revision{Main: 20, Changes: []changelog.Change{{KeyValue: f.history[19].KeyValue}}}
		err := f.during(t, 20, known, func() {
			f.write(5, 10, 0)
			time.Sleep(time.Minute)
		})
		if r := f.replayed(t, 20); !errors.Is(err, errEnough) || r.Last != 25 {
			t.Errorf("%v at %d", err, r.Last)
		}
		other := &changelog.Revision{Main: 20, Changes: []changelog.Change{{KeyValue: []byte("other")}}}
		if err := f.during(t, 20, other, func() { time.Sleep(time.Minute) }); !errors.Is(err, ErrOther) {
			t.Errorf("another history: %v", err)
		}
		f.cluster = 8
		if err := f.during(t, 25, nil, func() { time.Sleep(time.Minute) }); !errors.Is(err, ErrOther) {
			t.Errorf("another cluster: %v", err)
		}
	})
}

func TestASegmentIsStoredEarlyIfItIsLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		began := time.Now()
		_ = f.during(t, 0, nil, func() {
			time.Sleep(time.Second)
			f.write(600, 10_000, 0)
			time.Sleep(time.Minute)
		})
		if s := f.segments[len(f.segments)-2]; len(f.segments) < 3 || s.Until.Sub(began) > 2*time.Second {
			var list []string
			for _, s := range f.segments {
				list = append(list, fmt.Sprintf("%d-%d after %s", s.First, s.Last, s.Until.Sub(began)))
			}
			t.Errorf("segments: %v", list)
		}
	})
}
