// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"fmt"
	"io"

	"github.com/etcd-operator/etcd-operator/pkg/pages"
)

// Span is the revisions that a snapshot can be taken back to, both included.
type Span struct {
	// Oldest is the revision of the last compaction, or 1.
	Oldest int64
	// Newest is the revision of the snapshot.
	Newest int64
}

// Holds reports whether the span contains a revision.
func (s Span) Holds(revision int64) bool { return s.Oldest <= revision && revision <= s.Newest }

// String is such as "1034 to 80912".
func (s Span) String() string { return fmt.Sprintf("%d to %d", s.Oldest, s.Newest) }

// OutsideError means that a snapshot does not hold a revision.
type OutsideError struct {
	Revision int64
	Span     Span
}

func (e OutsideError) Error() string {
	if e.Revision < e.Span.Oldest {
		return fmt.Sprintf("the snapshot does not hold revision %d any more: etcd had compacted its history up to %d; it holds the revisions %s", e.Revision, e.Span.Oldest, e.Span)
	}
	return fmt.Sprintf("the snapshot does not hold revision %d yet: it holds the revisions %s", e.Revision, e.Span)
}

// ReadSpan reads the span of a snapshot from a few of its pages. It trusts the content, whose
// SHA-256 somebody else has to verify. The error wraps pages.ErrNoDatabase, or is that of the
// reader.
func ReadSpan(snapshot io.ReaderAt) (Span, error) {
	db, err := pages.Open(snapshot)
	if err != nil {
		return Span{}, err
	}
	oldest := int64(1) // etcd begins with it
	meta, found, err := db.Bucket(metaBucket)
	if err != nil {
		return Span{}, err
	}
	for _, name := range [][]byte{scheduledCompaction, finishedCompaction} {
		if !found {
			break
		}
		// A compaction that is scheduled and not finished may have removed records.
		value, there, err := meta.Get(name)
		if err != nil {
			return Span{}, err
		}
		if !there || len(value) < recordSize {
			continue
		}
		r, err := parseRecord(value[:recordSize])
		if err != nil {
			return Span{}, fmt.Errorf("%w: the revision of the compaction: %w", pages.ErrNoDatabase, err)
		}
		oldest = max(oldest, r.main)
	}
	keys, found, err := db.Bucket(keyBucket)
	if err != nil {
		return Span{}, err
	}
	if !found {
		return Span{}, fmt.Errorf("%w: it has no bucket of keys", pages.ErrNoDatabase)
	}
	last, err := keys.Last()
	if err != nil {
		return Span{}, err
	}
	s := Span{Oldest: oldest, Newest: oldest}
	if last != nil {
		r, err := parseRecord(last)
		if err != nil {
			return Span{}, fmt.Errorf("%w: %w", pages.ErrNoDatabase, err)
		}
		s.Newest = max(s.Newest, r.main)
	}
	return s, nil
}
