// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func objectsComeBack(t *testing.T, s *suite) {
	part := store.PartSize(-1)
	for _, tt := range []struct {
		name string
		size int64
		told []int64 // sizes that Put gets
	}{
		{"empty", 0, []int64{0, -1, 1000}},
		{"one byte", 1, []int64{1, -1}},
		{"small", 100 * kib, []int64{100 * kib, -1, 1000, large}},
		{"one part", part, []int64{part, -1}},
		{"a byte more than one part", part + 1, []int64{part + 1, -1, part}},
		{"large", large, []int64{large, -1, 1000, 2 * large, 50 << 30}},
	} {
		for _, told := range tt.told {
			t.Run(fmt.Sprintf("%s of %d bytes, announced as %d", tt.name, tt.size, told), func(t *testing.T) {
				in := s.open(t)
				key := fmt.Sprintf("back/%d-%d", tt.size, told)
				metadata := map[string]string{"etcd-revision": "12", "backup-name": "default/nightly", "note": "a b=c; d"}
				body := newContent(tt.size)
				begin := time.Now()
				put := s.put(t, in, key, store.Upload{Body: body, Size: told, Metadata: maps.Clone(metadata)})
				if put.Key != key || put.Size != tt.size {
					t.Errorf("put returns %+v", put)
				}
				got, err := in.Stat(t.Context(), key)
				if err != nil {
					t.Fatalf("stat: %v", err)
				}
				if got.Key != key || got.Size != tt.size || !maps.Equal(got.Metadata, metadata) {
					t.Errorf("stat returns %+v", got)
				}
				// Some servers report whole seconds, and kernels' clocks are coarse.
				if got.Modified.Before(begin.Add(-2*time.Second)) || got.Modified.After(time.Now().Add(time.Second)) {
					t.Errorf("modified %v, put at %v", got.Modified, begin)
				}
				s.expect(t, in, key, tt.size, body.sum())
				s.expectFinished(t)
			})
		}
	}
}

func replace(t *testing.T, s *suite) {
	in := s.open(t)
	for i, sizes := range [][2]int64{{large, 10}, {10, large}, {10, 0}} {
		key := fmt.Sprintf("replace/%d", i)
		s.put(t, in, key, store.Upload{Body: newContent(sizes[0]), Size: -1, Metadata: map[string]string{"old": "1", "both": "1"}})
		body := newContent(sizes[1])
		s.put(t, in, key, store.Upload{Body: body, Size: -1, Metadata: map[string]string{"new": "2", "both": "2"}})
		s.expect(t, in, key, sizes[1], body.sum())
		got, err := in.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"new": "2", "both": "2"}; !maps.Equal(got.Metadata, want) {
			t.Errorf("metadata %v, want %v", got.Metadata, want)
		}
		if keys := s.list(t, in, key); len(keys) != 1 {
			t.Errorf("there are %q", keys)
		}
	}
}

func offsets(t *testing.T, s *suite) {
	in := s.open(t)
	text := "0123456789"
	s.put(t, in, "offsets", store.Upload{Body: strings.NewReader(text), Size: 10})
	for _, offset := range []int64{0, 1, 9, 10} {
		body, err := in.Get(t.Context(), "offsets", offset)
		if err != nil {
			t.Errorf("get from %d: %v", offset, err)
			continue
		}
		got, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil {
			t.Errorf("read from %d: %v", offset, err)
		}
		if string(got) != text[offset:] {
			t.Errorf("from %d: %q", offset, got)
		}
	}
	if _, err := in.Get(t.Context(), "offsets-not", 5); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("from the middle of what is not there: %v", err)
	}
}

func lateMetadata(t *testing.T, s *suite) {
	in := s.open(t)
	for _, size := range []int64{0, 1000, large} {
		key := fmt.Sprintf("late/%d", size)
		body := newContent(size)
		calls := 0
		s.put(t, in, key, store.Upload{
			Body: body, Size: -1, Metadata: map[string]string{"early": "1"},
			FinalMetadata: func() map[string]string {
				calls++
				if !body.ended {
					t.Errorf("%d bytes: asked for metadata at byte %d", size, body.read)
				}
				return map[string]string{"sha256": body.sum()}
			},
		})
		want := map[string]string{"early": "1", "sha256": body.sum()}
		if s.LateMetadataOfSmall && size == large {
			delete(want, "sha256")
		}
		got, err := in.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got.Metadata, want) {
			t.Errorf("%d bytes: metadata %v, want %v", size, got.Metadata, want)
		}
		if calls > 1 {
			t.Errorf("%d bytes: asked for metadata %d times", size, calls)
		}
	}
}

func deleted(t *testing.T, s *suite) {
	in := s.open(t)
	for _, size := range []int64{10, large} {
		key := fmt.Sprintf("deleted/%d", size)
		s.putSize(t, in, key, size)
		s.putSize(t, in, key+"-sibling", 10)
		for range 2 {
			if err := in.Delete(t.Context(), key); err != nil {
				t.Fatalf("delete %s: %v", key, err)
			}
		}
		if keys := s.list(t, in, key); len(keys) != 1 || keys[0] != key+"-sibling" {
			t.Errorf("there are %q", keys)
		}
		if _, err := in.Stat(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("stat after delete: %v", err)
		}
	}
	if err := in.Delete(t.Context(), "deleted/never/was"); err != nil {
		t.Errorf("delete what never was: %v", err)
	}
}

func absent(t *testing.T, s *suite) {
	in := s.open(t)
	s.putSize(t, in, "absent/etcd/backup", 10)
	for _, key := range []string{"absent/never", "absent/etcd", "absent/etcd/backup/below", "absent/etcd/back"} {
		_, err := in.Stat(t.Context(), key)
		s.expectError(t, "stat "+key, err, store.ErrNotFound, key)
		_, err = in.Get(t.Context(), key, 0)
		s.expectError(t, "get "+key, err, store.ErrNotFound, key)
		if err := in.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %s: %v", key, err)
		}
	}
	if keys := s.list(t, in, "absent/never"); len(keys) > 0 {
		t.Errorf("there are %q", keys)
	}
	s.expectThere(t, in, "absent/etcd/backup")
}

func (s *suite) expectThere(t *testing.T, in store.Store, key string) {
	t.Helper()
	if _, err := in.Stat(t.Context(), key); err != nil {
		t.Errorf("stat %s: %v", key, err)
	}
}

func concurrently(t *testing.T, s *suite) {
	in := s.open(t)
	var puts sync.WaitGroup
	for i := range 4 {
		puts.Go(func() {
			key := fmt.Sprintf("concurrently/%d", i)
			body := newContent(10 * mib)
			if _, err := in.Put(t.Context(), key, store.Upload{Body: body, Size: -1}); err != nil {
				t.Errorf("put %s: %v", key, err)
				return
			}
			s.expect(t, in, key, 10*mib, body.sum())
			for _, err := range in.List(t.Context(), "concurrently/") {
				if err != nil {
					t.Errorf("list: %v", err)
				}
			}
		})
	}
	puts.Wait()
	if keys := s.list(t, in, "concurrently/"); len(keys) != 4 {
		t.Errorf("there are %q", keys)
	}
}
