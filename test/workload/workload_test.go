// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A store replaces etcd: it assigns revisions. A test can make it forget, change, go back, lag
// and refuse.
type store struct {
	mu       sync.Mutex
	revision int64
	kvs      map[string]KV
	refuse   bool
	dials    int
	stale    int // reads that are answered with the state before all writes
}

func newStore() *store { return &store{revision: 1, kvs: map[string]KV{}} }

func (s *store) Put(_ context.Context, key, val string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse {
		return nil, errors.New("etcdserver: no leader")
	}
	s.revision++
	s.kvs[key] = KV{Value: val, ModRevision: s.revision}
	return &clientv3.PutResponse{Header: &pb.ResponseHeader{Revision: s.revision}}, nil
}

func (s *store) Close() error { return nil }

func (s *store) dial(context.Context) (Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	return s, nil
}

func (s *store) String() string { return "store" }

func (s *store) Read(_ context.Context, prefix string) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale > 0 {
		s.stale--
		return &Snapshot{Revision: 1}, nil
	}
	snapshot := &Snapshot{Revision: s.revision, KVs: map[string]KV{}}
	for key, kv := range s.kvs {
		if strings.HasPrefix(key, prefix) {
			snapshot.KVs[key] = kv
		}
	}
	return snapshot, nil
}

// written lets a Writer write to a new store until it has some writes.
func written(t *testing.T) (*store, *History) {
	t.Helper()
	s := newStore()
	w := Start(t.Context(), Config{Dial: s.dial, Prefix: "k/", Pace: time.Microsecond})
	for w.Acked() < 30 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Microsecond) // the clock of a bubble moves only when all sleep
	}
	return s, w.Stop()
}

func TestVerifyAcceptsWhatWasKept(t *testing.T) {
	s, h := written(t)
	s.stale = 2
	if err := h.Verify(t.Context(), s, s); err != nil {
		t.Fatalf("nothing was lost, but: %v", err)
	}
	if len(h.Acks) < 30 || h.Failed != 0 {
		t.Fatalf("history: %v", h)
	}
}

func TestVerifyFindsBrokenPromises(t *testing.T) {
	cases := []struct {
		name   string
		damage func(*store, *History)
		want   string
	}{
		{"a write is missing", func(s *store, h *History) { delete(s.kvs, h.Acks[7].Key) }, "acknowledged write lost: "},
		{"all writes are missing", func(s *store, _ *History) { clear(s.kvs) }, "more"},
		{"a value differs", func(s *store, h *History) {
			s.kvs[h.Acks[7].Key] = KV{Value: "other", ModRevision: h.Acks[7].Revision}
		}, `holds "other"`},
		{"a key was written again", func(s *store, h *History) {
			s.kvs[h.Acks[7].Key] = KV{Value: h.Acks[7].Value, ModRevision: 1000}
		}, "is at revision 1000"},
		{"the store is an older one", func(s *store, _ *History) { s.revision = 5 }, "still at revision 5"},
		{"a client's revisions went back", func(_ *store, h *History) {
			h.Acks = append(h.Acks, Ack{Client: h.Acks[7].Client, Key: h.Acks[7].Key, Value: h.Acks[7].Value, Revision: h.Acks[7].Revision})
		}, "revisions went backwards"},
		{"a revision was given twice", func(_ *store, h *History) {
			twin := h.Acks[7]
			twin.Client = 99
			h.Acks = append(h.Acks, twin)
		}, "was given to two writes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			// The clock of the bubble moves only while Verify waits: slow machines get no error of theirs.
			synctest.Test(t, func(t *testing.T) {
				s, h := written(t)
				c.damage(s, h)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				err := h.Verify(ctx, s)
				if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("Verify says %v; it should say %q", err, c.want)
				}
			})
		})
	}
}

func TestVerifyTellsThatItCouldNotRead(t *testing.T) {
	_, h := written(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := h.Verify(ctx, &unreadable{giveUp: cancel})
	if err == nil || !strings.Contains(err.Error(), "connection refused") || errors.Is(err, ErrBroken) {
		t.Fatalf("a failed read is a failure but no lost write: %v", err)
	}
}

func TestVerifyReadsAgainAfterAFailure(t *testing.T) {
	s, h := written(t)
	if err := h.Verify(t.Context(), &unreadable{failures: 2, then: s}); err != nil {
		t.Errorf("the third read succeeds, but: %v", err)
	}
}

// unreadable fails some reads before one succeeds, or until the caller stops.
type unreadable struct {
	failures int
	then     Reader
	giveUp   func()
}

func (*unreadable) String() string { return "unreadable" }
func (u *unreadable) Read(ctx context.Context, prefix string) (*Snapshot, error) {
	if u.giveUp != nil {
		u.giveUp()
	}
	if u.failures--; u.then == nil || u.failures >= 0 {
		return nil, errors.New("connection refused")
	}
	return u.then.Read(ctx, prefix)
}

// Whoever returns a pointer to a client returns more than a nil interface with an error.
func TestWriterSurvivesADialThatFails(t *testing.T) {
	var failed atomic.Int64
	w := Start(t.Context(), Config{Prefix: "k/", Clients: 1, Pace: time.Microsecond, Dial: func(context.Context) (Conn, error) {
		var none *clientv3.Client
		failed.Add(1)
		return none, errors.New("no route")
	}})
	for failed.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	if history := w.Stop(); len(history.Acks) > 0 {
		t.Errorf("acknowledged %d writes", len(history.Acks))
	}
}

func TestWriterDialsAgainAfterAFailureAndNeverWritesAKeyTwice(t *testing.T) {
	s := newStore()
	s.refuse = true
	w := Start(t.Context(), Config{Dial: s.dial, Prefix: "k/", Clients: 1, Pace: time.Microsecond})
	for {
		s.mu.Lock()
		dials := s.dials
		s.mu.Unlock()
		if dials > 2 {
			break
		}
	}
	s.mu.Lock()
	s.refuse = false
	s.mu.Unlock()
	for w.Acked() < 3 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	h := w.Stop()
	if h.Failed < 2 || !strings.Contains(h.Failure, "no leader") {
		t.Errorf("failures are not reported: %v", h)
	}
	if h.Acks[0].Key == "k/0/00000000" {
		t.Errorf("the first key was refused, yet written later")
	}
	if err := h.Verify(t.Context(), s); err != nil {
		t.Error(err)
	}
}

func TestGaps(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	h := &History{Start: start, End: at(9), Acks: []Ack{{At: at(0.1)}, {At: at(0.2)}, {At: at(3.2)}, {At: at(4)}, {At: at(7.5)}}}
	gaps := h.Gaps(time.Second)
	want := []Gap{{at(0.2), 3 * time.Second}, {at(4), 3500 * time.Millisecond}, {at(7.5), 1500 * time.Millisecond}}
	if len(gaps) != len(want) {
		t.Fatalf("gaps %v, want %v", gaps, want)
	}
	for i := range want {
		if gaps[i] != want[i] {
			t.Errorf("gap %d is %v, want %v", i, gaps[i], want[i])
		}
	}
	if longest := h.LongestGap(); longest != want[1] {
		t.Errorf("longest gap is %v, want %v", longest, want[1])
	}
	silent := &History{Start: start, End: at(2)}
	if longest := silent.LongestGap(); longest.Took != 2*time.Second {
		t.Errorf("without any write the whole time is a gap, not %v", longest)
	}
}
