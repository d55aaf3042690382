// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func many(n int, size int64) (objects []Object) {
	for i := range n {
		objects = append(objects, Object{Key: fmt.Sprint(i), Size: size})
	}
	return objects
}

// raise makes n at least as large as to.
func raise(n *atomic.Int64, to int64) {
	for old := n.Load(); old < to && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}

func TestObjectsAreReadAheadInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, bytes, mostBytes atomic.Int64
		slow := func(ctx context.Context, o Object) ([]byte, error) {
			raise(&most, now.Add(1))
			raise(&mostBytes, bytes.Add(o.Size))
			defer now.Add(-1)
			defer bytes.Add(-o.Size)
			time.Sleep(100 * time.Millisecond)
			return []byte(o.Key), ctx.Err()
		}
		for _, size := range []int64{0, 1000, 10 << 20, 100 << 20} {
			most.Store(0)
			mostBytes.Store(0)
			began, i := time.Now(), 0
			for text, err := range ReadAhead(t.Context(), many(160, size), slow) {
				if err != nil || string(text) != fmt.Sprint(i) {
					t.Fatalf("object %d is %q, %v", i, text, err)
				}
				i++
			}
			if i != 160 || most.Load() > aheadObjects+1 || mostBytes.Load() > max(aheadBytes, size) {
				t.Errorf("%d objects of %d bytes, %d at once, %d bytes", i, size, most.Load(), mostBytes.Load())
			}
			if took := time.Since(began); size == 1000 && took > 1200*time.Millisecond {
				t.Errorf("it took %s", took)
			}
		}
	})
}

func TestAnErrorEndsReadingAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("bad")
		var under atomic.Int64
		read := func(ctx context.Context, o Object) ([]byte, error) {
			under.Add(1)
			defer under.Add(-1)
			if o.Key == "7" {
				return nil, bad
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Second):
				return nil, nil
			}
		}
		var last error
		n := 0
		for _, err := range ReadAhead(t.Context(), many(100, 1), read) {
			n++
			last = err
		}
		if n != 8 || !errors.Is(last, bad) || under.Load() != 0 {
			t.Errorf("%d objects, %v, %d under way", n, last, under.Load())
		}
		for _, err := range ReadAhead(t.Context(), many(1, 1), func(context.Context, Object) ([]byte, error) { panic("a bug") }) {
			if err == nil || !strings.Contains(err.Error(), "a bug") {
				t.Errorf("a panic: %v", err)
			}
		}
		for range ReadAhead(t.Context(), many(100, 1), read) {
			break // the caller has enough
		}
		if under.Load() != 0 {
			t.Errorf("%d under way", under.Load())
		}
		for range ReadAhead(t.Context(), nil, read) {
			t.Error("there is something")
		}
	})
}
