// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func unusualKeys(t *testing.T, s *suite) {
	in := s.open(t)
	names := []string{
		"etcd.backup_v12_2026-11-21-15:04:05",
		"with space", "two  spaces", "plus+plus", "plus+ space", "100%", "percent%20encoded", "a%2Fb",
		"ünïcode", "日本語/バックアップ", "é", "equals=and&and", "hash#hash", "question?mark", "at@sign",
		"tilde~", "semicolon;comma,", "quote'", "brackets[](){}", "dollar$", "star*", "bang!",
		".hidden", "dir/.hidden", "trailing.", "a/b/c/d/e/f", strings.Repeat("long", 50),
	}
	for _, name := range names {
		key := "unusual/" + name
		body := newContent(100)
		if _, err := in.Put(t.Context(), key, store.Upload{Body: body, Size: 100}); err != nil {
			t.Errorf("put %q: %v", key, err)
			continue
		}
		s.expect(t, in, key, 100, body.sum())
		if keys := s.list(t, in, key); !slices.Equal(keys, []string{key}) {
			t.Errorf("listed with the prefix %q: %q", key, keys)
		}
		if object, err := in.Stat(t.Context(), key); err != nil || object.Key != key {
			t.Errorf("stat %q: %+v, error %v", key, object, err)
		}
		if err := in.Delete(t.Context(), key); err != nil {
			t.Errorf("delete %q: %v", key, err)
		}
	}
	if keys := s.list(t, in, "unusual/"); len(keys) > 0 {
		t.Errorf("left after all were deleted: %q", keys)
	}
}

func allPages(t *testing.T, s *suite) {
	in := s.open(t)
	count := s.PageSize + 5
	want := map[string]int64{}
	keys := make(chan string)
	var puts sync.WaitGroup
	for range 8 {
		puts.Go(func() {
			for key := range keys {
				if _, err := in.Put(t.Context(), key, store.Upload{Body: strings.NewReader(key), Size: int64(len(key))}); err != nil {
					t.Errorf("put %s: %v", key, err)
				}
			}
		})
	}
	for i := range count {
		key := fmt.Sprintf("pages/etcd_v%d", i)
		want[key] = int64(len(key))
		keys <- key
	}
	close(keys)
	puts.Wait()
	for object, err := range in.List(t.Context(), "pages/etcd_v") {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if size, there := want[object.Key]; !there || size != object.Size || object.Modified.IsZero() {
			t.Errorf("listed once too often, or not as it is: %+v", object)
		}
		delete(want, object.Key)
	}
	if len(want) > 0 {
		t.Errorf("%d of %d objects were not listed", len(want), count)
	}
}

func siblings(t *testing.T, s *suite) {
	in := s.open(t)
	all := []string{"sib/etcd", "sib/etcd_v1", "sib/etcd_v10", "sib/etcd2_v1", "sib/etcd2/x", "sib/etcdir/a/b", "sib/etcdir/c", "sib2/etcd"}
	for _, key := range all {
		s.putSize(t, in, key, 10)
	}
	for prefix, want := range map[string][]string{
		"sib":           all,
		"sib/":          all[:7],
		"sib/etcd":      all[:7],
		"sib/etcd_v":    {"sib/etcd_v1", "sib/etcd_v10"},
		"sib/etcd_v1":   {"sib/etcd_v1", "sib/etcd_v10"},
		"sib/etcd2":     {"sib/etcd2_v1", "sib/etcd2/x"},
		"sib/etcdi":     {"sib/etcdir/a/b", "sib/etcdir/c"},
		"sib/etcdir/":   {"sib/etcdir/a/b", "sib/etcdir/c"},
		"sib/etcdir/a":  {"sib/etcdir/a/b"},
		"sib/etcdir/a/": {"sib/etcdir/a/b"},
		"sib/ETCD":      nil,
		"sib/none/at/":  nil,
	} {
		got := s.list(t, in, prefix)
		slices.Sort(got)
		want = slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) {
			t.Errorf("prefix %s: %q, want %q", prefix, got, want)
		}
	}
	// With no prefix, List yields all objects.
	got := s.list(t, in, "")
	for _, key := range all {
		if !slices.Contains(got, key) {
			t.Errorf("no prefix: %s is missing", key)
		}
	}
}

func leaveList(t *testing.T, s *suite) {
	in := s.open(t)
	for i := range 3 {
		s.putSize(t, in, fmt.Sprintf("leave/%d", i), 10)
	}
	for object, err := range in.List(t.Context(), "leave/") {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		// The others still exist while one is being deleted, as in retention.
		if err := in.Delete(t.Context(), object.Key); err != nil {
			t.Errorf("delete: %v", err)
		}
		break
	}
	if keys := s.list(t, in, "leave/"); len(keys) != 2 {
		t.Errorf("there are %q", keys)
	}
}
