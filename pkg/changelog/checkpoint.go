// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Checkpoint is what a member of etcd has answered to HashKV: the hash of its keys at a
// revision. It shows changes that are missing within a revision, which nothing else does.
type Checkpoint struct {
	Revision int64
	// Compacted is the revision of the member's compaction, which the hash depends on; 0:
	// there was none.
	Compacted int64
	Hash      uint32
}

func (c *Checkpoint) check(s *Segment) error {
	if c.Revision < 1 || c.Revision > s.Last || c.Compacted < 0 || c.Compacted > c.Revision {
		return fmt.Errorf("it ends with revision %d, and has a hash of revision %d with a compaction at %d", s.Last, c.Revision, c.Compacted)
	}
	return nil
}

func (c *Checkpoint) bytes() (text []byte) {
	for _, n := range []uint64{uint64(c.Revision), uint64(c.Compacted), uint64(c.Hash)} { // check: not negative
		text = binary.AppendUvarint(text, n)
	}
	return text
}

func readCheckpoint(content *bytes.Reader) (*Checkpoint, error) {
	read := &numbers{from: content}
	c := &Checkpoint{Revision: int64(read.next(math.MaxInt64)), Compacted: int64(read.next(math.MaxInt64))} // bounded
	c.Hash = uint32(read.next(math.MaxUint32))                                                              // bounded
	return c, read.err
}

// ReadHead reads the next of several stored segments without its changes, and skips them. It
// verifies nothing. The error is as that of Read.
func ReadHead(from io.ReadSeeker) (*Segment, error) {
	prefix, length, err := readPrefix(from)
	if err != nil {
		return nil, err
	}
	begin, err := from.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("read a segment of the log: %w", err)
	}
	body := bufio.NewReader(io.LimitReader(from, length))
	s, _, unpacked, err := parseHead(body, uint64(length)) // MaxSize
	if err == nil {
		err = s.readExtra(unpacked.Extra)
	}
	if err != nil {
		return nil, damaged("after %d bytes: %w", len(prefix), err)
	}
	if _, err := from.Seek(begin+length+sumSize, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read a segment of the log: %w", err)
	}
	return s, nil
}

// readPrefix reads what precedes the header, and returns it with the length that it states.
func readPrefix(from io.Reader) (prefix []byte, length int64, err error) {
	prefix = make([]byte, prefixSize)
	switch _, err := io.ReadFull(from, prefix); {
	case errors.Is(err, io.EOF):
		return nil, 0, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, damaged("it ends within its first bytes")
	case err != nil:
		return nil, 0, fmt.Errorf("read a segment of the log: %w", err)
	}
	if string(prefix[:len(formatName)]) != formatName {
		return nil, 0, damaged("it does not begin as one")
	}
	stated := binary.BigEndian.Uint64(prefix[len(formatName):])
	if stated > MaxSize {
		return nil, 0, damaged("it says that it has %d bytes", stated)
	}
	return prefix, int64(stated), nil // MaxSize
}

// byteReader is what gzip reads from without reading ahead.
type byteReader interface {
	io.Reader
	io.ByteReader
}

// parseHead reads what precedes the changes of a segment of a length in bytes.
func parseHead(body byteReader, length uint64) (s *Segment, leases uint64, unpacked *gzip.Reader, err error) {
	head := &numbers{from: body}
	s = &Segment{Cluster: head.next(math.MaxUint64)}
	s.First = int64(head.next(math.MaxInt64)) // bounded
	// A revision takes a byte at the least, compressed a thousandth of it.
	revisions := head.next(length << 12)
	s.Last = s.First + int64(revisions) - 1 // bounded
	s.Until = moment(head.next(math.MaxInt64))
	leases = head.next(length << 12)
	if head.err != nil {
		return nil, 0, nil, head.err
	}
	unpacked, err = gzip.NewReader(body)
	return s, leases, unpacked, err
}
