// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// A stored segment is its name in the format, the length of what follows up to the SHA-256, the
// header, the compressed changes, and the SHA-256 of all before it. Numbers are unsigned
// varints, but for the length (8 bytes, big-endian). The header has the cluster, First, the
// number of revisions, Until and the number of leases. Each lease has its ID and TTL. Each
// revision has its time as the milliseconds since the one before, its number of changes, and
// for each change the length of its KeyValue, doubled, plus 1 for a tombstone, and the
// KeyValue. The extra field of gzip's header has the rest.
const (
	formatName = "etcdlog1"
	prefixSize = int64(len(formatName)) + 8
	sumSize    = int64(sha256.Size)

	// MaxSize is the largest stored segment in bytes. It bounds the memory of a reader.
	MaxSize = 256 << 20
	// maxContent is how large the changes of a segment may be.
	maxContent = 1 << 30
)

// packers are compressors that no segment uses. Each has more than half a MiB of tables, which cost
// more to make than a small segment costs to compress.
var packers sync.Pool

// Encode returns the stored form of a segment.
func (s *Segment) Encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("store a segment of the log: %w", err)
	}
	var out bytes.Buffer
	out.WriteString(formatName)
	out.Write(make([]byte, 8))
	var header []byte
	for _, n := range []uint64{s.Cluster, uint64(s.First), uint64(len(s.Revisions)), millis(s.Until), uint64(len(s.Leases))} { // check: not negative
		header = binary.AppendUvarint(header, n)
	}
	out.Write(header)
	packer, err := packTo(&out)
	if err != nil {
		return nil, fmt.Errorf("store a segment of the log: %w", err)
	}
	defer func() {
		packer.Reset(io.Discard) // it must not hold the segment in memory
		packers.Put(packer)
	}()
	packer.Extra = s.extra()
	if err := errors.Join(s.write(packer), packer.Close()); err != nil {
		return nil, fmt.Errorf("store a segment of the log: %w", err)
	}
	text := out.Bytes()
	if int64(len(text))+sumSize > MaxSize {
		return nil, fmt.Errorf("store a segment of the log: its %d bytes are too many: a transaction at revision %d or after is too large", len(text), s.First)
	}
	binary.BigEndian.PutUint64(text[len(formatName):], uint64(int64(len(text))-prefixSize)) // positive
	s.Sum = sha256.Sum256(text)
	return append(text, s.Sum[:]...), nil
}

func packTo(out io.Writer) (*gzip.Writer, error) {
	if packer, is := packers.Get().(*gzip.Writer); is {
		packer.Reset(out)
		return packer, nil
	}
	return gzip.NewWriterLevel(out, gzip.BestSpeed)
}

// write writes what is compressed.
func (s *Segment) write(into io.Writer) error {
	var part []byte
	for _, l := range s.Leases {
		part = binary.AppendUvarint(part, uint64(l.ID))  // the ID's bits
		part = binary.AppendUvarint(part, uint64(l.TTL)) // positive
	}
	before := uint64(0)
	for _, r := range s.Revisions {
		at := millis(r.At)
		part = binary.AppendUvarint(part, at-before)
		part = binary.AppendUvarint(part, uint64(len(r.Changes)))
		before = at
		for _, c := range r.Changes { // of one transaction, there may be many
			part = append(binary.AppendUvarint(part, c.kind()), c.KeyValue...)
			if len(part) >= 64<<10 {
				if _, err := into.Write(part); err != nil {
					return err
				}
				part = part[:0]
			}
		}
	}
	_, err := into.Write(part)
	return err
}

// kind is the length of the KeyValue, and whether it is a tombstone.
func (c Change) kind() uint64 {
	kind := uint64(len(c.KeyValue)) << 1
	if c.Tombstone {
		kind |= 1
	}
	return kind
}

func millis(t time.Time) uint64 { return uint64(max(t.UnixMilli(), 0)) } // not negative
