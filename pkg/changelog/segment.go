// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"errors"
	"fmt"
	"time"
)

// ErrDamaged means that the content is not what was stored.
var ErrDamaged = errors.New("the segment of the log is damaged")

// Change is one change of a key.
type Change struct {
	// Tombstone means that the key was deleted.
	Tombstone bool
	// KeyValue is etcd's mvccpb.KeyValue, as etcd stores it. That of a tombstone has only the
	// key.
	KeyValue []byte
}

// Revision is all changes of one transaction, in their order.
type Revision struct {
	Main int64
	// At is when the writer of the log received it, in milliseconds: no earlier than etcd
	// made it.
	At      time.Time
	Changes []Change
}

// Lease is a lease that changes refer to.
type Lease struct {
	ID int64
	// TTL is the time to live in seconds that was granted.
	TTL int64
}

// Segment is a part of a log.
type Segment struct {
	// Cluster is the ID of the etcd cluster. A restored cluster has another one.
	Cluster uint64
	// First and Last are the revisions that it holds. Last is First-1 if it holds none.
	First, Last int64
	// Until is in milliseconds. Every write that etcd acknowledged before it has a revision of
	// at most Last.
	Until     time.Time
	Revisions []Revision
	// Leases are those that no earlier segment of the same writer has, of the changes here.
	Leases []Lease
	// Trail ties the segment to those before it; nil: its writer knew no trails.
	Trail *Trail
	// Checkpoint is of a revision that the log holds with this segment; nil: there is none.
	Checkpoint *Checkpoint
	// Sum is the SHA-256 of the stored form. Encode and Decode set it.
	Sum Digest
}

// check reports what contradicts the contract of a segment.
func (s *Segment) check() error {
	switch {
	case s.Cluster == 0:
		return errors.New("it names no cluster")
	case s.First < 1 || s.Last != s.First+int64(len(s.Revisions))-1:
		return fmt.Errorf("it says that it holds the revisions %d to %d, and holds %d", s.First, s.Last, len(s.Revisions))
	}
	last := time.Time{}
	for i, r := range s.Revisions {
		switch {
		case r.Main != s.First+int64(i):
			return fmt.Errorf("revision %d stands where %d belongs", r.Main, s.First+int64(i))
		case len(r.Changes) == 0:
			return fmt.Errorf("revision %d changes nothing", r.Main)
		case r.At.Before(last):
			return fmt.Errorf("revision %d is of %s, and the one before it of %s", r.Main, r.At.UTC().Format(time.RFC3339Nano), last.UTC().Format(time.RFC3339Nano))
		}
		last = r.At
	}
	if s.Checkpoint != nil {
		if err := s.Checkpoint.check(s); err != nil {
			return err
		}
	}
	if s.Trail != nil {
		return s.Trail.check(s)
	}
	return nil
}

// Size is about how many bytes the changes of a revision take in memory.
func (r *Revision) Size() int {
	const overhead = 64
	size := overhead
	for _, c := range r.Changes {
		size += overhead + len(c.KeyValue)
	}
	return size
}
