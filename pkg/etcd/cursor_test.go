// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// keyspace answers ranges as etcd does.
type keyspace struct {
	keys     []string
	size     func(i int) int // of a value
	requests int
	counted  int // keys, over all requests
	largest  int // page in bytes
}

func (k *keyspace) page(c *cursor) (page []*mvccpb.KeyValue, count int64) {
	first, _ := slices.BinarySearch(k.keys, c.from)
	last := len(k.keys)
	if c.end != noEnd {
		last, _ = slices.BinarySearch(k.keys, c.end)
	}
	k.requests++
	k.counted += last - first
	size := 0
	for i := first; i < last && int64(len(page)) < c.limit; i++ {
		page = append(page, &mvccpb.KeyValue{Key: []byte(k.keys[i]), Value: make([]byte, k.size(i))})
		size += k.size(i)
	}
	k.largest = max(k.largest, size)
	return page, int64(last - first)
}

func TestACursorReadsEachKeyOnceAndCountsFew(t *testing.T) {
	small := func(int) int { return 100 }
	source := rand.New(rand.NewPCG(1, 2))
	made := func(n int, name func(i int) string) (keys []string) {
		for i := range n {
			keys = append(keys, name(i))
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	}
	binary := func(most int) func(int) string {
		return func(int) string {
			key := make([]byte, 1+source.IntN(most))
			for i := range key {
				key[i] = []byte{0, 1, 'a', 0xfe, 0xff}[source.IntN(5)]
			}
			return string(key)
		}
	}
	registry := func(i int) string {
		return fmt.Sprintf("/registry/%s/namespace-%d/object-%x", []string{"pods", "secrets", "leases"}[i%3], i%40, source.Uint64())
	}
	for name, k := range map[string]*keyspace{
		"none":              {size: small},
		"one":               {keys: []string{"a"}, size: small},
		"numbers":           {keys: made(60_000, func(i int) string { return fmt.Sprintf("filling/%09d", i) }), size: small},
		"objects":           {keys: made(60_000, registry), size: small},
		"few":               {keys: made(300, registry), size: small},
		"binary":            {keys: made(60_000, binary(12)), size: small},
		"ends of bytes":     {keys: made(2_000, func(i int) string { return strings.Repeat("\xff", 1+i%1000) + fmt.Sprint(i) }), size: small},
		"nested":            {keys: made(30_000, func(i int) string { return strings.Repeat("a", 1+i%1500) + string(rune('b'+i%20)) }), size: small},
		"long and far":      {keys: made(30_000, func(i int) string { return fmt.Sprintf("%05d", i) + strings.Repeat("x", 1400) }), size: small},
		"values of 1 MiB":   {keys: made(300, registry), size: func(int) int { return 1 << 20 }},
		"large after small": {keys: made(3_000, registry), size: func(i int) int { return []int{10, 1 << 16}[min(i/2800, 1)] }},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for c := newCursor(); !c.done; {
				page, count := k.page(c)
				for _, kv := range page {
					got = append(got, string(kv.Key))
				}
				c.advance(page, count)
				if k.requests > 10+len(k.keys) {
					t.Fatalf("%d requests for %d keys, at %q", k.requests, len(k.keys), c.from)
				}
			}
			if !slices.Equal(got, k.keys) {
				t.Errorf("%d keys were read of %d, or in another order", len(got), len(k.keys))
			}
			t.Logf("%d keys, %d requests, %d counted, largest page %d bytes", len(k.keys), k.requests, k.counted, k.largest)
			if most := 40*len(k.keys) + 5*wideWindow; k.counted > most {
				t.Errorf("etcd counts %d keys, want at most %d", k.counted, most)
			}
			if k.largest > mostKeys<<16 {
				t.Errorf("a page has %d bytes", k.largest)
			}
		})
	}
}

func TestAWindowEndsBehindAllKeysOfItsPrefix(t *testing.T) {
	for _, c := range []struct {
		key   string
		depth int
		want  string
	}{
		{"abc", 3, "abd"}, {"abc", 9, "abd"}, {"abc", 1, "b"}, {"abc", 0, noEnd},
		{"a\xff\xff", 3, "b"}, {"\xff\xff", 2, noEnd}, {"a\x00", 2, "a\x01"}, {"", 4, noEnd},
	} {
		got := after(c.key, c.depth)
		if got != c.want {
			t.Errorf("after %q by %d bytes: %q, want %q", c.key, c.depth, got, c.want)
		}
		if got != noEnd && bytes.Compare([]byte(got), []byte(c.key)) <= 0 {
			t.Errorf("%q does not follow %q", got, c.key)
		}
	}
}
