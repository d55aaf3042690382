// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Read reads the next of several stored segments that follow each other. The error is io.EOF if
// there is none, and wraps ErrDamaged if the content is not a whole segment.
func Read(from io.Reader) (*Segment, error) {
	prefix, length, err := readPrefix(from)
	if err != nil {
		return nil, err
	}
	// The length may be wrong: memory follows what arrives.
	text := bytes.NewBuffer(prefix)
	want := length + sumSize
	switch n, err := io.CopyN(text, from, want); {
	case errors.Is(err, io.EOF):
		return nil, damaged("it ends after %d of %d bytes", n, want)
	case err != nil:
		return nil, fmt.Errorf("read a segment of the log: %w", err)
	}
	return Decode(text.Bytes())
}

// Decode reads a stored segment. Each error wraps ErrDamaged.
func Decode(text []byte) (*Segment, error) {
	if int64(len(text)) < prefixSize+sumSize || string(text[:len(formatName)]) != formatName {
		return nil, damaged("it does not begin as one")
	}
	end := int64(len(text)) - sumSize
	if binary.BigEndian.Uint64(text[len(formatName):]) != uint64(end-prefixSize) { // positive
		return nil, damaged("it has %d bytes, and says otherwise", len(text))
	}
	sum := sha256.Sum256(text[:end])
	if !bytes.Equal(sum[:], text[end:]) {
		return nil, damaged("its SHA-256 is not the one at its end")
	}
	s, err := parse(text[prefixSize:end])
	if err == nil {
		s.Sum = sum
		err = s.check()
	}
	if err != nil {
		return nil, damaged("%w", err)
	}
	return s, nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// numbers reads numbers, and remembers the first error.
type numbers struct {
	from io.ByteReader
	err  error
}

// next returns a number of at most a bound; 0 after an error.
func (n *numbers) next(bound uint64) uint64 {
	if n.err != nil {
		return 0
	}
	value, err := binary.ReadUvarint(n.from)
	if err == nil && value > bound {
		err = fmt.Errorf("the number %d is too large", value)
	}
	if n.err = err; err != nil {
		return 0
	}
	return value
}

func parse(text []byte) (*Segment, error) {
	s, leases, unpacked, err := parseHead(bytes.NewReader(text), uint64(len(text)))
	if err != nil {
		return nil, err
	}
	if err := s.readExtra(unpacked.Extra); err != nil {
		return nil, err
	}
	content := bufio.NewReader(io.LimitReader(unpacked, maxContent))
	read := &numbers{from: content}
	for range leases {
		l := Lease{ID: int64(read.next(math.MaxUint64)), TTL: int64(read.next(math.MaxInt64))} // the ID's bits
		if read.err != nil {
			return nil, read.err
		}
		s.Leases = append(s.Leases, l)
	}
	at := uint64(0)
	for i := range s.Last - s.First + 1 {
		at += read.next(math.MaxInt64)
		r := Revision{Main: s.First + i, At: moment(at)}
		for range read.next(maxContent) {
			c, err := readChange(content, read)
			if err != nil {
				return nil, err
			}
			r.Changes = append(r.Changes, c)
		}
		if read.err != nil {
			return nil, read.err
		}
		s.Revisions = append(s.Revisions, r)
	}
	if _, err := content.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its last change")
	}
	return s, nil
}

func readChange(content *bufio.Reader, read *numbers) (Change, error) {
	kind := read.next(maxContent << 1)
	if read.err != nil {
		return Change{}, read.err
	}
	c := Change{Tombstone: kind&1 == 1, KeyValue: make([]byte, kind>>1)}
	_, err := io.ReadFull(content, c.KeyValue)
	return c, err
}

func moment(ms uint64) time.Time { return time.UnixMilli(int64(ms)).UTC() } // as it was stored
