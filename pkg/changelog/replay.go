// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// mostSeen is how many segments a Replay remembers.
const mostSeen = 16

// ErrGap means that revisions are missing.
var ErrGap = errors.New("the log has a gap")

// Replay continues a state of etcd's data by segments.
type Replay struct {
	// Cluster is the ID of the cluster; 0: that of the first segment.
	Cluster uint64
	// Last is the revision up to which the data are known.
	Last int64
	// At is when the last revision was received, and Until the latest one of the segments.
	At, Until time.Time

	added *Segment // last
	// seen are the last segments with changes. Writers overlap for a moment only.
	seen []Link
	// origin and digest are those of the trail so far, if it is tied.
	tied   bool
	origin int64
	digest Digest
}

// Add returns the revisions of a segment that are new. Those that overlap what was added before
// must be the same. The error is ErrGap if revisions between are missing, and ErrDamaged if the
// segments contradict each other. The segments must come in the order of Chain.
func (r *Replay) Add(s *Segment) ([]Revision, error) {
	if r.Cluster == 0 {
		r.Cluster = s.Cluster
	}
	switch before := r.added; {
	case s.Cluster != r.Cluster:
		return nil, damaged("it is of the cluster %016x, and those before it of %016x", s.Cluster, r.Cluster)
	case s.First > r.Last+1:
		return nil, fmt.Errorf("%w: after revision %d it continues with %d", ErrGap, r.Last, s.First)
	case before != nil && (s.Last < before.Last || s.Last == before.Last && !s.Until.After(before.Until)):
		return nil, damaged("it holds the revisions %d to %d, and stands after revision %d", s.First, s.Last, before.Last)
	}
	if before := r.added; before != nil {
		for main := max(s.First, before.First); main <= before.Last; main++ {
			if !before.Revisions[main-before.First].Same(&s.Revisions[main-s.First]) {
				return nil, damaged("two writers have stored revision %d, with different changes", main)
			}
		}
	}
	if err := r.follow(s); err != nil {
		return nil, err
	}
	if r.added = s; len(s.Revisions) > 0 {
		r.seen = append(r.seen[max(0, len(r.seen)+1-mostSeen):], linkTo(s))
	}
	if s.Until.After(r.Until) {
		r.Until = s.Until
	}
	if s.Last <= r.Last {
		return nil, nil
	}
	fresh := s.Revisions[r.Last+1-s.First:]
	for i := range fresh {
		// The clocks of two writers differ.
		if fresh[i].At.Before(r.At) {
			fresh[i].At = r.At
		}
		r.At = fresh[i].At
	}
	r.Last = s.Last
	return fresh, nil
}

// follow checks that the trail of a segment continues the one so far.
func (r *Replay) follow(s *Segment) error {
	t := s.Trail
	joins := r.tied && s.First <= r.added.Last+1 // else both are before r.Last
	if t == nil {
		// Its writer knew no trails. One that does may continue later.
		if joins {
			r.digest = r.digest.withAll(s.Revisions[r.added.Last+1-s.First:])
		}
		r.tied = joins
		return nil
	}
	for _, l := range r.seen {
		if t.Previous.names(l) && t.Previous.Sum != l.Sum {
			return damaged("the segment of the revisions %d to %d, which it continues, is not what its writer stored", l.First, l.Last)
		}
	}
	switch {
	case !joins, t.Origin != r.origin && r.added.Trail == nil:
		r.tied, r.origin = true, t.Origin
	case t.Origin != r.origin:
		return damaged("it is of a log that begins after revision %d, and those before it of one that begins after %d", t.Origin, r.origin)
	case t.Before.withAll(s.Revisions[:r.added.Last+1-s.First]) != r.digest:
		return damaged("what was before it, up to revision %d, is not what its writer stored: this segment or one before it was changed", r.added.Last)
	}
	r.digest = t.After
	return nil
}

// Same reports whether two revisions have the same changes.
func (r *Revision) Same(other *Revision) bool {
	if len(r.Changes) != len(other.Changes) {
		return false
	}
	for i, c := range r.Changes {
		if c.Tombstone != other.Changes[i].Tombstone || !bytes.Equal(c.KeyValue, other.Changes[i].KeyValue) {
			return false
		}
	}
	return true
}
