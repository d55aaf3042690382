// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/recorder/recordertest"
)

// fake is a member, and a store.
type fake struct {
	*recordertest.Member
	segments []*changelog.Segment
	hang     bool // the store
	slow     time.Duration
	hashes   recorder.Hashes
	since    time.Time
	leases   []int64
}

func newFake(revisions int) *fake {
	f := &fake{Member: recordertest.New(7)}
	f.Write(revisions, 10, 0)
	return f
}

func (f *fake) store(ctx context.Context, s *changelog.Segment) error {
	if f.hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	select {
	case <-time.After(f.slow):
	case <-ctx.Done():
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

func (f *fake) recorder() *recorder.Recorder {
	return &recorder.Recorder{Member: f.Member, Cluster: 7, Since: f.since, Leases: f.leases, Lag: 5 * time.Second, Store: f.store, Stored: func(*changelog.Segment) {}, Hashes: f.hashes, Clock: clock.RealClock{}}
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
			if !bytes.Equal(revision.Changes[0].KeyValue, f.Content(revision.Main)) {
				t.Errorf("revision %d has another change", revision.Main)
			}
		}
	}
	return r
}

func TestEachRevisionIsStoredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		rng := rand.New(rand.NewPCG(1, 1))
		err := f.during(t, 20, nil, func() {
			for range 200 {
				f.Write(rng.IntN(50), 100, int64(1+rng.IntN(5)))
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			time.Sleep(5 * time.Second)
		})
		r := f.replayed(t, 20)
		at, _ := f.Position(t.Context())
		if !errors.Is(err, errEnough) || r.Last != at.Revision {
			t.Errorf("it ended with %v, at revision %d of %d", err, r.Last, at.Revision)
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
		if len(leases) != 5 || f.Asked() != 5 {
			t.Errorf("%d leases, asked %d times", len(leases), f.Asked())
		}
	})
}

// A restore of a moment must have nothing that was written later.
func TestARevisionIsNoEarlierThanItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		var written time.Time
		_ = f.during(t, 20, nil, func() {
			time.Sleep(time.Second + 400*time.Microsecond)
			written = time.Now()
			f.Write(1, 10, 0)
			time.Sleep(10 * time.Second)
		})
		for _, s := range f.segments {
			for _, r := range s.Revisions {
				if r.At.Before(written) {
					t.Errorf("revision %d is of %s, and was written at %s", r.Main, r.At, written)
				}
			}
		}
	})
}

func TestWithoutChangesThereIsASegmentAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		_ = f.during(t, 20, nil, func() { time.Sleep(time.Hour) })
		if n := len(f.segments); n < 58 || n > 61 {
			t.Errorf("%d segments in an hour", n)
		}
		if r := f.replayed(t, 20); r.Last != 20 || time.Since(r.Until) > 70*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// slowStart is a member that has not answered yet when the recording ends.
type slowStart struct{ *recordertest.Member }

func (slowStart) Changes(ctx context.Context, _ int64) (recorder.Stream, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The caller knows by it that nothing has failed.
func TestARecordingThatIsEndedWhileItBeginsSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errEnough) })
		r := f.recorder()
		r.Member = slowStart{f.Member}
		if err := r.Run(ctx, 20, nil); !errors.Is(err, errEnough) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// A proxy can answer reads, and hold back streams. A recording through another member may work.
func TestAMemberThatNeverBeginsAStreamEndsTheRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(errEnough) })
		began := time.Now()
		r := f.recorder()
		r.Member = slowStart{f.Member}
		err := r.Run(ctx, 20, nil)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "did not confirm") || took > 15*time.Second {
			t.Errorf("after %s, it ended with %v", took, err)
		}
	})
}

func TestALostRevisionEndsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		f.Lose(25)
		err := f.during(t, 20, nil, func() {
			f.Write(4, 10, 0)
			time.Sleep(10 * time.Second)
			f.Write(4, 10, 0)
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
		f := newFake(20)
		f.Lose(22)
		err := f.during(t, 20, nil, func() {
			f.Write(2, 10, 0)
			time.Sleep(time.Minute)
		})
		if err == nil || errors.Is(err, errEnough) || f.replayed(t, 20).Until.After(time.Now().Add(-50*time.Second)) {
			t.Errorf("%v, and the log claims %+v", err, f.replayed(t, 20))
		}
	})
}

func TestTheMemoryForAStoreThatHangsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		f.hang = true
		err := f.during(t, 0, nil, func() {
			for range 40 {
				f.Write(100, 10_000, 0)
				time.Sleep(time.Second)
			}
		})
		if !errors.Is(err, recorder.ErrBehind) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// While the store or the operator was away, more changes have come than may wait for the store.
func TestALogCatchesUpWithMoreThanMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		f.Write(5000, 10_000, 0)
		f.slow, f.since = time.Second, time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
		err := f.during(t, 0, nil, func() {
			for range 60 {
				f.Write(3, 10_000, 0)
				time.Sleep(time.Second)
			}
			time.Sleep(10 * time.Second)
		})
		at, _ := f.Position(t.Context())
		if r := f.replayed(t, 0); !errors.Is(err, errEnough) || r.Last != at.Revision || time.Since(r.Until) > time.Minute {
			t.Errorf("it ended with %v, at revision %d of %d, and until %s", err, r.Last, at.Revision, r.Until)
		}
		for _, s := range f.segments {
			size := 0
			for _, r := range s.Revisions {
				size += r.Size()
			}
			if size > recorder.MaxWaiting+(1<<20) {
				t.Errorf("%d bytes were in memory", size)
			}
			// What follows may have been acknowledged before.
			if s.Last < 5000 && !s.Until.Equal(f.since) {
				t.Errorf("the segment up to revision %d claims all up to %s", s.Last, s.Until)
			}
		}
	})
}

// late is a member whose changes come after it has said how many there are.
type late struct{ *recordertest.Member }

type lateStream struct{ recorder.Stream }

func (m late) Changes(ctx context.Context, from int64) (recorder.Stream, error) {
	stream, err := m.Member.Changes(ctx, from)
	return lateStream{stream}, err
}

func (s lateStream) Next() ([]etcd.Change, error) {
	time.Sleep(time.Second)
	return s.Stream.Next()
}

// Before 3.5.16 and 3.4.34, a compaction also removes the deletions of its own revision (etcd pull request 18274).
func TestALogContinuesAtARevisionWhoseDeletionsAreCompacted(t *testing.T) {
	tombstone := changelog.Change{Tombstone: true, KeyValue: []byte("deleted")}
	for name, test := range map[string]struct {
		known func(*fake) []changelog.Change
		lost  int64
	}{
		"some of its changes":         {func(f *fake) []changelog.Change { return []changelog.Change{tombstone, {KeyValue: f.Content(20)}} }, 0},
		"all of them":                 {func(*fake) []changelog.Change { return []changelog.Change{tombstone, tombstone} }, 20},
		"none, of an etcd since then": {func(f *fake) []changelog.Change { return []changelog.Change{{KeyValue: f.Content(20)}} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(20)
				f.Lose(test.lost)
				f.since = time.Now()
				err := f.during(t, 20, &changelog.Revision{Main: 20, Changes: test.known(f)}, func() {
					time.Sleep(5 * time.Minute)
					synctest.Wait()
					if len(f.segments) < 4 {
						t.Errorf("%d segments in five minutes without changes", len(f.segments))
					}
					f.Write(3, 10, 0)
					time.Sleep(10 * time.Second)
				})
				if r := f.replayed(t, 20); !errors.Is(err, errEnough) || r.Last != 23 {
					t.Errorf("it ended with %v, at revision %d", err, r.Last)
				}
			})
		})
	}
	// Deletions alone do not make another history the same.
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		known := &changelog.Revision{Main: 20, Changes: []changelog.Change{tombstone}}
		if err := f.during(t, 20, known, func() { time.Sleep(time.Minute) }); !errors.Is(err, recorder.ErrOther) || len(f.segments) > 0 {
			t.Errorf("another history: %v, and %d segments", err, len(f.segments))
		}
	})
}

// It was made while nobody recorded, and nothing was written since.
func TestALogContinuesAfterALargeTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		known := &changelog.Revision{Main: 20, Changes: []changelog.Change{{KeyValue: f.Content(20)}}}
		f.Write(1, recorder.MaxWaiting+1, 0)
		f.since = time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errEnough) })
		r := f.recorder()
		r.Member = late{f.Member}
		err := r.Run(ctx, 20, known)
		if got := f.replayed(t, 20); !errors.Is(err, errEnough) || got.Last != 21 {
			t.Errorf("it ended with %v, at revision %d", err, got.Last)
		}
	})
}

func TestALogContinuesOnlyItsOwnHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		known := &changelog.Revision{Main: 20, Changes: []changelog.Change{{KeyValue: f.Content(20)}}}
		err := f.during(t, 20, known, func() {
			f.Write(5, 10, 0)
			time.Sleep(time.Minute)
		})
		if r := f.replayed(t, 20); !errors.Is(err, errEnough) || r.Last != 25 {
			t.Errorf("%v at %d", err, r.Last)
		}
		other := &changelog.Revision{Main: 20, Changes: []changelog.Change{{KeyValue: []byte("other")}}}
		if err := f.during(t, 20, other, func() { time.Sleep(time.Minute) }); !errors.Is(err, recorder.ErrOther) {
			t.Errorf("another history: %v", err)
		}
		f.Replace(8, 25)
		if err := f.during(t, 25, nil, func() { time.Sleep(time.Minute) }); !errors.Is(err, recorder.ErrReplaced) {
			t.Errorf("another cluster: %v", err)
		}
	})
}

func TestASegmentIsStoredEarlyIfItIsLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		began := time.Now()
		_ = f.during(t, 0, nil, func() {
			time.Sleep(time.Second)
			f.Write(600, 10_000, 0)
			time.Sleep(time.Minute + time.Second)
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

// The hash of a revision is stored with a later segment, and asking delays none.
func TestTheHashOfEtcdIsStoredNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		var asked []int64
		f.hashes = recorder.Hashes{First: 5 * time.Minute, Every: time.Hour, Ask: func(ctx context.Context, revision int64) (changelog.Checkpoint, error) {
			asked = append(asked, revision)
			select {
			case <-time.After(30 * time.Second):
			case <-ctx.Done():
				return changelog.Checkpoint{}, ctx.Err()
			}
			if len(asked) == 2 {
				return changelog.Checkpoint{}, errors.New("it is busy")
			}
			return changelog.Checkpoint{Revision: revision, Compacted: 3, Hash: uint32(revision)}, nil // small
		}}
		err := f.during(t, 20, nil, func() {
			for range 4 * 3600 {
				f.Write(1, 10, 0)
				time.Sleep(time.Second)
			}
			time.Sleep(24 * time.Hour) // nothing changes
			f.Write(1, 10, 0)
			time.Sleep(5 * time.Second) // the question is under way
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("it ended with %v", err)
		}
		f.replayed(t, 20)
		var got []int64
		for i, s := range f.segments {
			if c := s.Checkpoint; c != nil {
				if *c != (changelog.Checkpoint{Revision: c.Revision, Compacted: 3, Hash: uint32(c.Revision)}) || c.Revision > f.segments[i-1].Last { // small
					t.Errorf("segment %d has %+v", i, c)
				}
				got = append(got, c.Revision)
			}
			if len(s.Revisions) > 0 && s.Until.Sub(s.Revisions[0].At) > 5*time.Second {
				t.Errorf("segment %d waited", i)
			}
		}
		if len(asked) != 6 || len(got) != 4 || got[0] < 300 || got[0] > 330 || got[1] != asked[2] {
			t.Errorf("asked about %v, stored %v", asked, got)
		}
	})
}

// Clients write every few minutes, so that the answer comes while nothing changes. A restore does not read
// what a later segment repeats.
func TestAHashIsStoredWhereARestoreReadsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		f.hashes = recorder.Hashes{First: 5 * time.Minute, Every: time.Hour, Ask: func(_ context.Context, revision int64) (changelog.Checkpoint, error) {
			time.Sleep(time.Second)
			return changelog.Checkpoint{Revision: revision, Hash: 1}, nil
		}}
		_ = f.during(t, 20, nil, func() {
			for range 200 {
				f.Write(3, 10, 0)
				time.Sleep(7*time.Minute + 13*time.Second)
			}
		})
		var keys []changelog.Key
		hashes := map[string]bool{}
		for _, s := range f.segments {
			k, _ := changelog.ParseKey("p", changelog.KeyOf("p", s))
			keys = append(keys, k)
			if s.Checkpoint != nil {
				hashes[k.Text] = true
			}
		}
		read := 0
		for _, k := range changelog.Chain(keys, 20) {
			if hashes[k.Text] {
				read++
			}
		}
		if len(hashes) < 20 || read != len(hashes) {
			t.Errorf("of %d hashes, a restore reads %d", len(hashes), read)
		}
	})
}

// The quorum may be gone for good: what it has committed is worth having.
func TestWhatCameBeforeTheMemberFailedIsStored(t *testing.T) {
	for name, test := range map[string]struct {
		lease int64
		slow  time.Duration // the store
		fail  func(*fake)
		want  int64
	}{
		"no quorum is left": {0, 0, func(f *fake) { f.Fail(errors.New("etcdserver: no leader")) }, 23},
		// A restore gives a lease that nobody knows a time to live of its own.
		"no quorum is left, and nobody knows a lease": {5, 0, func(f *fake) { f.Fail(errors.New("etcdserver: no leader")) }, 23},
		"no quorum is left when the recorder asks for a lease": {5, 0, func(f *fake) {
			f.FailLeases(errors.New("etcdserver: no leader"))
			time.Sleep(5 * time.Second)
			f.Fail(errors.New("etcdserver: no leader"))
		}, 23},
		"another cluster has taken its place": {0, 0, func(f *fake) { f.Replace(8, 30) }, 20},
		"no quorum is left while a segment is on its way": {0, 2 * time.Second, func(f *fake) {
			time.Sleep(3 * time.Second)
			f.Write(2, 10, 0)
			synctest.Wait()
			f.Fail(errors.New("etcdserver: no leader"))
		}, 25},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(20)
				f.since, f.slow = time.Now(), test.slow
				if err := f.during(t, 20, nil, func() {
					time.Sleep(6 * time.Second)
					f.Write(3, 10, test.lease)
					synctest.Wait()
					test.fail(f)
					time.Sleep(time.Minute)
				}); err == nil || errors.Is(err, errEnough) {
					t.Errorf("it ended with %v", err)
				}
				r := f.replayed(t, 20)
				if r.Last != test.want || r.Until.After(time.Now().Add(-time.Minute-500*time.Millisecond)) {
					t.Errorf("the log ends with %+v, want revision %d", r, test.want)
				}
			})
		})
	}
}

// etcd may not have answered when the log got that segment.
func TestARecordingAsksForTheLeasesOfTheSegmentBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		f.since, f.leases = time.Now(), []int64{5, 6}
		_ = f.during(t, 20, nil, func() {
			time.Sleep(5 * time.Minute) // a restore does not read the first of segments without changes
			f.Write(1, 10, 6)
			time.Sleep(10 * time.Second)
		})
		got := map[int64]int64{}
		for _, s := range f.segments {
			for _, l := range s.Leases {
				if len(s.Revisions) == 0 || got[l.ID] != 0 {
					t.Errorf("the segment of the revisions %d to %d has the lease %d", s.First, s.Last, l.ID)
				}
				got[l.ID] = l.TTL
			}
		}
		if len(got) != 2 || got[5] != 50 || got[6] != 60 {
			t.Errorf("the log has the leases %v", got)
		}
	})
}

// buggy is a member whose stream panics.
type buggy struct{ *recordertest.Member }

func (b buggy) Changes(context.Context, int64) (recorder.Stream, error) { return b, nil }

func (buggy) Next() ([]etcd.Change, error) { panic("a bug") }

func TestABugEndsOnlyItsOwnRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(20)
		r := f.recorder()
		r.Member = buggy{f.Member}
		if err := r.Run(t.Context(), 20, nil); err == nil || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("it ended with %v", err)
		}
	})
}
