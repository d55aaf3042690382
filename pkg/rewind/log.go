// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// followLog brings what lives from the snapshot to the revision, and verifies the last
// checkpoint on the way. What lies behind that rests on the log alone.
func (f *fold) followLog(keys *bbolt.Bucket) error {
	checkpoint, err := f.lastCheckpoint()
	if err != nil {
		return err
	}
	log := f.openLog()
	log.segment = func(s *changelog.Segment) {
		for _, l := range s.Leases {
			f.granted[l.ID] = l.TTL
		}
	}
	if checkpoint != nil {
		if err := log.each(checkpoint.Revision, f.apply); err != nil {
			return err
		}
		if err := f.verify(keys, checkpoint); err != nil {
			return err
		}
	}
	return log.each(f.revision, f.apply)
}

// apply changes what lives.
func (f *fold) apply(r record, value []byte) error {
	content, err := parseKeyValue(value)
	switch {
	case err != nil:
		return fmt.Errorf("the log's record of %s: %w", r, err)
	case r.tombstone:
		delete(f.live, digestOf(content.key))
	default:
		f.live[digestOf(content.key)] = r
	}
	return nil
}

// copyLog copies records of the log.
func (f *fold) copyLog() error {
	return f.openLog().each(f.revision, func(r record, value []byte) error { return f.keep(r, r.bytes(), value) })
}

func (f *fold) openLog() *logReader {
	return &logReader{from: f.source.log(), replay: changelog.Replay{Last: f.span.Newest}, at: f.span.Newest}
}

// logReader reads a log from a snapshot on.
type logReader struct {
	from    io.Reader
	replay  changelog.Replay
	segment func(*changelog.Segment) // gets each; may be nil
	waiting []changelog.Revision     // of the segment that was read last
	at      int64                    // the last revision that each has got
}

// each continues up to a revision. A change's place in its transaction is its ordinal in etcd's
// records.
func (l *logReader) each(to int64, do func(record, []byte) error) error {
	for l.at < to {
		if len(l.waiting) == 0 {
			if err := l.read(); err != nil {
				return err
			}
			continue
		}
		revision := l.waiting[0]
		l.waiting, l.at = l.waiting[1:], revision.Main
		for i, c := range revision.Changes {
			if err := do(record{revision.Main, int64(i), c.Tombstone}, c.KeyValue); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *logReader) read() error {
	s, err := changelog.Read(l.from)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends with revision %d", changelog.ErrGap, l.replay.Last)
	}
	if err != nil {
		return fmt.Errorf("the segment after revision %d: %w", l.replay.Last, err)
	}
	if l.waiting, err = l.replay.Add(s); err != nil {
		return fmt.Errorf("the segment of the revisions %d to %d: %w", s.First, s.Last, err)
	}
	if l.segment != nil {
		l.segment(s)
	}
	return nil
}
