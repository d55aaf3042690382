// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
)

// Chain returns the segments of one cluster that continue a revision without a gap, in their
// order. Two writers may have overlapped for a moment, so a segment may begin before the end of
// the one before it. Each segment adds revisions, or a later Until.
func Chain(keys []Key, from int64) []Key {
	sorted := slices.SortedFunc(slices.Values(keys), func(a, b Key) int {
		return cmp.Or(markOf(a, 0).compare(markOf(b, 0)), strings.Compare(a.Text, b.Text))
	})
	return slices.Collect(chain(slices.Values(sorted), func(k Key) Mark { return markOf(k, 0) }, from))
}

// chain yields the links of a chain, of segments in the order of Mark.compare.
func chain[K any](sorted iter.Seq[K], mark func(K) Mark, from int64) iter.Seq[K] {
	return func(yield func(K) bool) {
		var link K // the last one, which a later one may replace
		linked, idle, known := false, false, false
		last, until := from, int64(math.MinInt64)
		for k := range sorted {
			m := mark(k)
			if m.First > last+1 {
				break
			}
			if m.Last < last || m.Last == last && m.until <= until {
				continue
			}
			// What holds nothing new but a time replaces one before it that does the same. So does
			// any later segment, if that one holds changes before from: they may be damaged.
			needless := m.Last == last && idle || known && m.until >= until
			if linked && !needless && !yield(link) {
				return
			}
			link, linked, idle, known = k, true, m.Last < m.First, m.First <= m.Last && m.Last == from
			last, until = m.Last, m.until
		}
		if linked {
			yield(link)
		}
	}
}

// Mark is what an Index has of a segment. A log may have millions of segments, so it is small.
type Mark struct {
	// First and Last are those of the Key.
	First, Last int64
	until       int64 // in milliseconds
	size        uint32
}

func markOf(k Key, size int64) Mark {
	return Mark{k.First, k.Last, k.Until.UnixMilli(), uint32(min(max(size, 0), math.MaxUint32))} // bounded
}

// Until is that of the Key.
func (m Mark) Until() time.Time { return time.UnixMilli(m.until).UTC() }

// Size is that of the object in bytes. It is more than MaxSize if that of the object is.
func (m Mark) Size() int64 { return int64(m.size) }

func (m Mark) compare(other Mark) int {
	return cmp.Or(cmp.Compare(m.First, other.First), cmp.Compare(other.Last, m.Last), cmp.Compare(other.until, m.until))
}

// Index is the segments of one cluster's log. It keeps no keys, which Key makes again.
type Index struct {
	cluster  uint64
	marks    []Mark
	unsorted bool
}

// NewIndex returns an empty one.
func NewIndex(cluster uint64) *Index { return &Index{cluster: cluster} }

// Add adds a segment whose object has so many bytes.
func (x *Index) Add(k Key, size int64) {
	m := markOf(k, size)
	// Of the segments that say at the same revision that nothing has changed yet, the first and the last one say
	// it all. A store lists those in between one after the other.
	if n := len(x.marks); n > 1 && m.repeats(x.marks[n-1]) && x.marks[n-1].repeats(x.marks[n-2]) {
		x.marks[n-1] = m
		return
	}
	x.marks, x.unsorted = append(x.marks, m), true
}

// repeats reports whether two segments differ in the time alone, and hold no change.
func (m Mark) repeats(before Mark) bool {
	return m.Last < m.First && m.First == before.First && m.Last == before.Last && m.until >= before.until
}

func (x *Index) sort() {
	if x.unsorted {
		slices.SortFunc(x.marks, Mark.compare)
		x.unsorted = false
	}
}

// Marks yields all segments. A later one begins at no lower revision.
func (x *Index) Marks() iter.Seq[Mark] {
	x.sort()
	return slices.Values(x.marks)
}

// Chain yields the segments that continue a revision without a gap, as the function Chain does.
func (x *Index) Chain(from int64) iter.Seq[Mark] {
	return chain(x.Marks(), func(m Mark) Mark { return m }, from)
}

// After yields the segments that begin after a revision.
func (x *Index) After(revision int64) iter.Seq[Mark] {
	x.sort()
	begin, _ := slices.BinarySearchFunc(x.marks, revision, func(m Mark, revision int64) int {
		if m.First <= revision {
			return -1
		}
		return 1
	})
	return slices.Values(x.marks[begin:])
}

// Key returns the key of a segment below a path.
func (x *Index) Key(path string, m Mark) Key {
	k := Key{Cluster: x.cluster, First: m.First, Last: m.Last, Until: m.Until()}
	k.Text = textOf(path, k)
	return k
}
