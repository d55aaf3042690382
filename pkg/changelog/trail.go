// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Digest stands for content. No two contents have the same.
type Digest [sha256.Size]byte

// Trail ties a segment to those before it. Its digests are of changes alone: several writers
// cut the same log into other segments, and have the same digests. The SHA-256 of a segment
// shows that it is whole. Its trail shows that it belongs where it stands.
type Trail struct {
	// Origin is the revision after which the log began.
	Origin int64
	// Before is the digest of all changes from there up to First-1, and After up to Last.
	Before, After Digest
	// Previous is the last segment with changes that the writer knew; zero: none.
	Previous Link
}

// Link names a segment, and stands for all that it holds: also for times and leases.
type Link struct {
	First, Last int64
	Until       time.Time
	Sum         Digest
}

func linkTo(s *Segment) Link { return Link{s.First, s.Last, s.Until, s.Sum} }

// names reports whether two links name the same segment.
func (l Link) names(other Link) bool {
	return l.First == other.First && l.Last == other.Last && l.Until.Equal(other.Until)
}

// originDigest is where the digests of a log begin.
func originDigest(cluster uint64, origin int64) Digest {
	text := binary.BigEndian.AppendUint64([]byte("etcd-operator log"), cluster)
	return sha256.Sum256(binary.BigEndian.AppendUint64(text, uint64(origin))) // not negative
}

// with returns the digest after one more revision.
func (d Digest) with(r *Revision) Digest {
	sum := sha256.New()
	head := binary.AppendUvarint(d[:], uint64(r.Main)) // positive
	sum.Write(binary.AppendUvarint(head, uint64(len(r.Changes))))
	for _, c := range r.Changes {
		sum.Write(binary.AppendUvarint(nil, c.kind()))
		sum.Write(c.KeyValue)
	}
	return Digest(sum.Sum(nil))
}

func (d Digest) withAll(revisions []Revision) Digest {
	for i := range revisions {
		d = d.with(&revisions[i])
	}
	return d
}

// check reports what contradicts the segment of the trail.
func (t *Trail) check(s *Segment) error {
	switch {
	case t.Origin < 0 || t.Origin >= s.First:
		return fmt.Errorf("it begins with revision %d, and its log after %d", s.First, t.Origin)
	case t.Origin == s.First-1 && t.Before != originDigest(s.Cluster, t.Origin):
		return errors.New("its log begins with it, and it has another digest of what was before")
	case t.Before.withAll(s.Revisions) != t.After:
		return errors.New("its changes are not those of its digest")
	}
	return nil
}

// Tail is the end of a log, which one writer continues.
type Tail struct {
	trail Trail // Before and Previous are those of the next segment
}

// NewTail begins a log after a revision.
func NewTail(cluster uint64, origin int64) *Tail {
	return &Tail{Trail{Origin: origin, Before: originDigest(cluster, origin)}}
}

// TailOf continues the log after a segment that was read. If the segment has no trail, one
// begins after it.
func TailOf(s *Segment) *Tail {
	t := NewTail(s.Cluster, s.Last)
	if s.Trail != nil {
		t.trail = Trail{Origin: s.Trail.Origin, Before: s.Trail.After, Previous: s.Trail.Previous}
	}
	t.note(s)
	return t
}

// Tie gives a segment its trail.
func (t *Tail) Tie(s *Segment) {
	trail := t.trail
	trail.After = trail.Before.withAll(s.Revisions)
	s.Trail = &trail
}

// Stored notes that the store has a segment that Tie and Encode have got.
func (t *Tail) Stored(s *Segment) {
	t.trail.Before = s.Trail.After
	t.note(s)
}

func (t *Tail) note(s *Segment) {
	if len(s.Revisions) > 0 {
		t.trail.Previous = linkTo(s)
	}
}
