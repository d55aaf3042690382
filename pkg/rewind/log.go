// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"errors"
	"fmt"
	"io"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// followLog brings what lives from the snapshot to the revision.
func (f *fold) followLog() error {
	return f.eachRecord(func(s *changelog.Segment) {
		for _, l := range s.Leases {
			f.granted[l.ID] = l.TTL
		}
	}, func(r record, value []byte) error {
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
	})
}

// copyLog copies records of the log.
func (f *fold) copyLog() error {
	return f.eachRecord(nil, func(r record, value []byte) error { return f.keep(r, r.bytes(), value) })
}

// eachRecord reads the log up to the revision. A change's place in its transaction is its
// ordinal in etcd's records.
func (f *fold) eachRecord(segment func(*changelog.Segment), do func(record, []byte) error) error {
	log := f.source.log()
	replay := changelog.Replay{Last: f.span.Newest}
	for {
		s, err := changelog.Read(log)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: it ends with revision %d", changelog.ErrGap, replay.Last)
		}
		if err != nil {
			return fmt.Errorf("the segment after revision %d: %w", replay.Last, err)
		}
		fresh, err := replay.Add(s)
		if err != nil {
			return fmt.Errorf("the segment of the revisions %d to %d: %w", s.First, s.Last, err)
		}
		if segment != nil {
			segment(s)
		}
		for _, revision := range fresh {
			if revision.Main > f.revision {
				return nil
			}
			for i, c := range revision.Changes {
				if err := do(record{revision.Main, int64(i), c.Tombstone}, c.KeyValue); err != nil {
					return err
				}
			}
		}
		if replay.Last >= f.revision {
			return nil
		}
	}
}
