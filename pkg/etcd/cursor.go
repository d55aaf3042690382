// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "go.etcd.io/etcd/api/v3/mvccpb"

const (
	// firstPage is how many keys the first page has. Nothing is known of their size, and etcd bounds
	// a value to 1.5 MiB by default.
	firstPage = 16
	// mostKeys bounds a page for the case that much larger values follow: the member builds it, even if the
	// reader does not take it.
	mostKeys = 500
	// pageBytes is the aim for the size of a page.
	pageBytes = 1 << 20
	// wideWindow is a window with too many keys. For each page, etcd counts all keys of the window
	// that are left, and no key changes meanwhile: 114 ms for a million keys.
	wideWindow = 10_000
)

// noEnd is the end of a range that has none.
const noEnd = "\x00"

// A cursor goes through all keys in order, page by page. The pages lie in windows, one behind the
// other, so that etcd does not count all keys for each page.
type cursor struct {
	from, end string // of what is left of the window
	limit     int64  // keys of the next page
	done      bool

	depth int   // how many bytes of from decide where the next window ends
	step  int   // how many fewer bytes a wider window has
	found int64 // keys of the window
}

func newCursor() *cursor { return &cursor{from: "\x00", end: noEnd, limit: firstPage, step: 1} }

// advance continues behind a page. count is how many keys the window had left, with those of the page.
func (c *cursor) advance(page []*mvccpb.KeyValue, count int64) {
	c.resize(page)
	n := int64(len(page))
	c.found += n
	if n > 0 && n < count {
		c.from = string(page[n-1].Key) + "\x00"
		if count > wideWindow {
			c.narrow()
		}
		return
	}
	if c.end == noEnd {
		c.done = true
		return
	}
	c.widen()
	c.from, c.end, c.found = c.end, after(c.end, c.depth), 0
}

// narrow lets the window end behind the next keys. It begins with the narrowest one, because a window
// can be made wider step by step without counting all keys.
func (c *cursor) narrow() {
	c.depth, c.step = len(c.from)-1, 1
	if end := after(c.from, c.depth); c.end == noEnd || end != noEnd && end < c.end {
		c.end = end
	}
}

// widen makes the next window wider if the last one had few keys, and faster each time.
func (c *cursor) widen() {
	if c.found >= mostKeys {
		c.step = 1
		return
	}
	c.depth = max(0, min(c.depth, len(c.end))-c.step)
	c.step *= 2
}

// resize chooses the number of keys of the next page by the size of those of the last one.
func (c *cursor) resize(page []*mvccpb.KeyValue) {
	size := 0
	for _, kv := range page {
		size += len(kv.Key) + len(kv.Value)
	}
	if size > 0 {
		c.limit = max(1, min(int64(len(page))*pageBytes/int64(size), 2*c.limit, mostKeys))
	}
}

// shrink makes the next page much smaller: the member has built the last one in vain.
func (c *cursor) shrink() { c.limit = max(1, c.limit/16) }

// after returns the first key behind all keys that begin with so many bytes of a key.
func after(key string, depth int) string {
	prefix := []byte(key[:min(depth, len(key))])
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			prefix[i]++
			return string(prefix[:i+1])
		}
	}
	return noEnd
}
