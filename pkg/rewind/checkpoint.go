// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"go.etcd.io/bbolt"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// ErrHash means that a snapshot and its log do not give what etcd had.
var ErrHash = errors.New("the backup and the log do not give what etcd had")

// lastCheckpoint returns the last checkpoint that the snapshot and the log up to the revision
// can be compared with; nil: there is none.
func (f *fold) lastCheckpoint() (last *changelog.Checkpoint, err error) {
	heads := f.source.log()
	for {
		s, err := changelog.ReadHead(heads)
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look for the checkpoints of the log: %w", err)
		}
		if c := s.Checkpoint; c != nil && f.comparable(c) && (last == nil || c.Revision > last.Revision) {
			last = c
		}
		if s.Last >= f.revision {
			return last, nil // no more is read, and verified
		}
	}
}

// comparable reports whether the snapshot has all records that the checkpoint counts. If the
// snapshot comes from a member that was compacted later, it has not.
func (f *fold) comparable(c *changelog.Checkpoint) bool {
	return f.span.Newest <= c.Revision && c.Revision <= f.revision && max(c.Compacted, 1) >= f.span.Oldest
}

// verify compares what etcd hashed at a checkpoint: all records up to its revision. Of those up
// to the compaction, only what lives at the revision counts. live is as of the revision.
func (f *fold) verify(keys *bbolt.Bucket, c *changelog.Checkpoint) error {
	if len(f.live) == 0 {
		return nil // etcd counts then also what its compaction has not removed yet
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write(keyBucket)
	count := func(r record, key, value []byte) error {
		if r.main <= c.Compacted {
			content, err := parseKeyValue(value)
			if err != nil {
				return fmt.Errorf("the record of %s: %w", r, err)
			}
			if r.tombstone || f.live[digestOf(content.key)] != r {
				return nil
			}
		}
		sum.Write(key)
		sum.Write(value)
		return nil
	}
	cursor := keys.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		r, _ := parseRecord(k) // liveAt has parsed it
		if err := count(r, k, v); err != nil {
			return err
		}
	}
	if err := f.openLog().each(c.Revision, func(r record, value []byte) error { return count(r, r.bytes(), value) }); err != nil {
		return err
	}
	if got := sum.Sum32(); got != c.Hash {
		return fmt.Errorf("%w: at revision %d, their hash is %08x, and a member of etcd reported %08x (HashKV): a change before it is missing or another one. Restore from a later backup, or to a revision before the log began to differ", ErrHash, c.Revision, got, c.Hash)
	}
	f.result.Checkpoint = c.Revision
	return nil
}
