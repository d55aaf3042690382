// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// What the first release of the format lacks is in the extra field of gzip's header: its
// readers ignore it. The field has parts (RFC 1952): two bytes of a name, the length (2 bytes,
// little-endian), and the content. Readers ignore parts of other names.
const (
	partTrail      = "ET"
	partCheckpoint = "EC"
)

func (s *Segment) extra() (text []byte) {
	if t := s.Trail; t != nil {
		content := binary.AppendUvarint(nil, uint64(t.Origin)) // check: not negative
		content = append(append(content, t.Before[:]...), t.After[:]...)
		for _, n := range []uint64{uint64(t.Previous.First), uint64(t.Previous.Last), millis(t.Previous.Until)} { // not negative
			content = binary.AppendUvarint(content, n)
		}
		text = appendPart(text, partTrail, append(content, t.Previous.Sum[:]...))
	}
	if s.Checkpoint != nil {
		text = appendPart(text, partCheckpoint, s.Checkpoint.bytes())
	}
	return text
}

func appendPart(text []byte, name string, content []byte) []byte {
	text = binary.LittleEndian.AppendUint16(append(text, name...), uint16(len(content))) // a few hundred bytes
	return append(text, content...)
}

func (s *Segment) readExtra(text []byte) (err error) {
	const head = 4
	for len(text) > 0 {
		if len(text) < head {
			return errors.New("its extra field ends within a part")
		}
		name, size := string(text[:2]), int(binary.LittleEndian.Uint16(text[2:]))
		if text = text[head:]; len(text) < size {
			return errors.New("its extra field ends within a part")
		}
		content := bytes.NewReader(text[:size])
		text = text[size:]
		switch name {
		case partTrail:
			err = s.readTrail(content)
		case partCheckpoint:
			s.Checkpoint, err = readCheckpoint(content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Segment) readTrail(content *bytes.Reader) error {
	read := &numbers{from: content}
	t := &Trail{Origin: int64(read.next(math.MaxInt64))} // bounded
	read.digest(content, &t.Before)
	read.digest(content, &t.After)
	t.Previous.First = int64(read.next(math.MaxInt64)) // bounded
	t.Previous.Last = int64(read.next(math.MaxInt64))  // bounded
	if until := read.next(math.MaxInt64); until > 0 {
		t.Previous.Until = moment(until)
	}
	read.digest(content, &t.Previous.Sum)
	s.Trail = t
	return read.err
}

func (n *numbers) digest(from io.Reader, into *Digest) {
	if n.err == nil {
		_, n.err = io.ReadFull(from, into[:])
	}
}
