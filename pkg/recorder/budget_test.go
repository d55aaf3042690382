// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/recorder/recordertest"
)

// remote is a member whose changes take memory for each recorder.
type remote struct{ *recordertest.Member }

type remoteStream struct{ recorder.Stream }

func (m remote) Changes(ctx context.Context, from int64) (recorder.Stream, error) {
	stream, err := m.Member.Changes(ctx, from)
	return remoteStream{stream}, err
}

func (s remoteStream) Next() ([]etcd.Change, error) {
	changes, err := s.Stream.Next()
	for i := range changes {
		changes[i].KeyValue = bytes.Clone(changes[i].KeyValue)
	}
	return changes, err
}

// heapInUse is how many bytes are in use.
func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) // small
}

// A store that accepts connections and hangs made the operator of many clusters exceed its limit on memory,
// which ended the backups of all.
func TestTheMemoryOfManyRecordersIsBounded(t *testing.T) {
	const most, many = 8 << 20, 20
	for name, since := range map[string]time.Duration{"of new logs": 0, "of logs that catch up": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := recorder.NewBudget(most)
				ctx, cancel := context.WithCancelCause(t.Context())
				var running sync.WaitGroup
				large, small := newFake(0), newFake(0)
				large.hang = true
				ends := make([]error, many)
				start := func(i int, f *fake) {
					r := f.recorder()
					r.Member, r.Budget = remote{f.Member}, budget
					if since > 0 {
						r.Since = time.Now().Add(-since).UTC().Truncate(time.Millisecond)
					}
					running.Go(func() { ends[i] = r.Run(ctx, 0, nil) })
				}
				start(0, small)
				for i := range many - 1 {
					start(i+1, large)
				}
				before := heapInUse()
				for second := range 60 {
					large.Write(20, 3000, 0)
					small.Write(1, 10_000, 0)
					time.Sleep(time.Second)
					if second%5 > 0 {
						continue
					}
					if got := heapInUse() - before; got > 2*most {
						t.Fatalf("after %d s, the recorders hold %d MiB", second, got>>20)
					}
				}
				time.Sleep(5 * time.Second)
				cancel(errEnough)
				running.Wait()
				ended := 0
				for _, err := range ends[1:] {
					if errors.Is(err, recorder.ErrBehind) {
						ended++
					} else if !errors.Is(err, errEnough) {
						t.Errorf("one ended with %v", err)
					}
				}
				if ended < many/2 {
					t.Errorf("%d of %d ended", ended, many)
				}
				if r := small.replayed(t, 0); !errors.Is(ends[0], errEnough) || r.Last != 60 {
					t.Errorf("the small one ended with %v, at revision %d", ends[0], r.Last)
				}
				// Nothing is left of them: these hold less.
				ctx, cancel = context.WithCancelCause(t.Context())
				later := newFake(0)
				later.hang = true
				later.Write(100, 10_000, 0)
				for i := range 10 {
					if i < 5 {
						start(i, later)
					} else {
						start(i, newFake(0))
					}
				}
				time.Sleep(10 * time.Second)
				cancel(errEnough)
				running.Wait()
				for _, err := range ends[:10] {
					if !errors.Is(err, errEnough) {
						t.Errorf("later, one ended with %v", err)
					}
				}
			})
		})
	}
}

// What was dropped is in no segment, so none may say that nothing has changed, whatever etcd answers.
func TestWhatIsDroppedIsNotMissedInSilence(t *testing.T) {
	for range 100 { // who is first is left to chance
		synctest.Test(t, func(t *testing.T) {
			f := newFake(20)
			f.Write(9, 50_000, 0)
			r := f.recorder()
			r.Member, r.Budget = late{f.Member}, recorder.NewBudget(100_000)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { cancel(errEnough) })
			err := r.Run(ctx, 20, nil)
			for _, s := range f.segments {
				if s.Last < 29 {
					t.Fatalf("it ended with %v, and a segment up to revision %d says that nothing has come", err, s.Last)
				}
			}
		})
	}
}
