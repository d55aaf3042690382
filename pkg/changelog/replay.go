// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

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

	newest *Revision // of the log
}

// Add returns the revisions of a segment that are new. Those that overlap what was added before
// must be the same. The error is ErrGap if revisions between are missing, and ErrDamaged if the
// segments contradict each other.
func (r *Replay) Add(s *Segment) ([]Revision, error) {
	if r.Cluster == 0 {
		r.Cluster = s.Cluster
	}
	switch {
	case s.Cluster != r.Cluster:
		return nil, damaged("it is of the cluster %016x, and those before it of %016x", s.Cluster, r.Cluster)
	case s.First > r.Last+1:
		return nil, fmt.Errorf("%w: after revision %d it continues with %d", ErrGap, r.Last, s.First)
	}
	if n := r.newest; n != nil && s.First <= n.Main && n.Main <= s.Last {
		if !n.Same(&s.Revisions[n.Main-s.First]) {
			return nil, damaged("two writers have stored revision %d, with different changes", n.Main)
		}
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
	r.newest = &fresh[len(fresh)-1]
	return fresh, nil
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
