// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// flatMemory: a store that held the object, or a part for each of many requests, would take
// far more than the bound. The parts in flight and uncollected garbage stay below it.
func flatMemory(t *testing.T, s *suite) {
	const size, bound = 160 * mib, 96 * mib
	in := s.open(t)
	s.putSize(t, in, "flat", large) // one-time allocations do not count
	for _, told := range []int64{size, -1} {
		idle := heap(true)
		var peak uint64
		body := newContent(size)
		sampled := &sampler{body: body, peak: &peak}
		s.put(t, in, "flat", store.Upload{Body: sampled, Size: told})
		if grown := int64(peak) - int64(idle); grown > bound {
			t.Errorf("size %d: the heap grew by %d MiB", told, grown/mib)
		} else {
			t.Logf("size %d: the heap grew by %d MiB", told, grown/mib)
		}
		s.expect(t, in, "flat", size, body.sum())
	}
	if err := in.Delete(t.Context(), "flat"); err != nil {
		t.Error(err)
	}
}

// sampler reads a body, and measures the heap every 8 MiB.
type sampler struct {
	body *content
	peak *uint64
	next int64
}

func (r *sampler) Read(p []byte) (int, error) {
	if r.body.read >= r.next {
		r.next += 8 * mib
		*r.peak = max(*r.peak, heap(false))
	}
	return r.body.Read(p)
}

func heap(collect bool) uint64 {
	if collect {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// leaks: a closed store must leave no goroutine and no open file, whatever happened to it.
func leaks(t *testing.T, s *suite) {
	before := goleak.IgnoreCurrent()
	files := openFiles(t)
	in := s.opener(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.putSize(t, in, "leaks/small", 10)
	s.putSize(t, in, "leaks/large", large)
	bad := errors.New("bad")
	_, err := in.Put(ctx, "leaks/bad", store.Upload{Body: newContent(large).after(large-1, func() error { return bad }), Size: -1})
	s.expectError(t, "put", err, bad)
	_, err = in.Put(ctx, "leaks/cancelled", store.Upload{Body: newContent(large).after(large-1, func() error { cancel(); return nil }), Size: -1})
	s.expectError(t, "put", err, context.Canceled)
	body, err := in.Get(t.Context(), "leaks/large", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, body, 100*kib); err != nil {
		t.Error(err)
	}
	if err := body.Close(); err != nil {
		t.Errorf("close in the middle: %v", err)
	}
	for _, err := range in.List(t.Context(), "leaks/") {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if _, err := in.Get(t.Context(), "leaks/none", 0); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if now := openFiles(t); now > files {
		t.Errorf("%d files are open, %d were", now, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(fmt.Errorf("count open files: %w", err))
	}
	return len(entries)
}
