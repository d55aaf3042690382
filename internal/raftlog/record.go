// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package raftlog reads etcd's write-ahead log. It carries the raft entries that a database lacks from the
// log of one member into that of another. It writes to no log of an etcd that runs.
package raftlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrNoLog means that the content is not as etcd writes it. A file ends like that too: after the last
// record, there are zeros.
var ErrNoLog = errors.New("it does not begin like a write-ahead log of etcd")

// Kinds of records (server/storage/wal/wal.go).
const (
	Metadata = 1
	Entry    = 2
	State    = 3
	Checksum = 4
)

// Castagnoli is the table of the checksums. That of a record includes all records before it.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Record is etcd's walpb.Record.
type Record struct {
	Kind     uint64
	Checksum uint32
	Data     []byte
}

// frameSize is the size of what precedes a record.
const frameSize = 8

// ReadRecord reads a record in its frame (server/storage/wal/decoder.go): 8 bytes, of which the lower
// seven are the size. The highest bit says that padding follows, and the lowest three of the same byte
// how much. The record has at most so many bytes. size includes frame and padding.
func ReadRecord(from io.Reader, most uint64) (r Record, size int64, err error) {
	var frame [frameSize]byte
	if _, err := io.ReadFull(from, frame[:]); err != nil {
		return Record{}, 0, cut(err)
	}
	length := binary.LittleEndian.Uint64(frame[:])
	content, padding := length&(1<<56-1), uint64(0)
	if length>>63 == 1 {
		padding = length >> 56 & 7
	}
	if content == 0 || content > most {
		return Record{}, 0, ErrNoLog
	}
	text := make([]byte, content+padding)
	if _, err := io.ReadFull(from, text); err != nil {
		return Record{}, 0, cut(err)
	}
	size = frameSize + int64(len(text))
	for text = text[:content]; len(text) > 0; {
		field, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return Record{}, 0, ErrNoLog
		}
		text = text[n:]
		var value uint64
		switch {
		case kind == protowire.VarintType:
			value, n = protowire.ConsumeVarint(text)
		case field == 3 && kind == protowire.BytesType:
			r.Data, n = protowire.ConsumeBytes(text)
		default:
			n = protowire.ConsumeFieldValue(field, kind, text)
		}
		if n < 0 {
			return Record{}, 0, ErrNoLog
		}
		text = text[n:]
		switch field {
		case 1:
			r.Kind = value
		case 2:
			r.Checksum = uint32(value) // as etcd wrote it
		}
	}
	return r, size, nil
}

// cut replaces the error of a file that ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrNoLog
	}
	return err
}

// Frame returns a record in its frame, as etcd's encoder writes it.
func (r Record) Frame() []byte {
	record := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), r.Kind)
	record = protowire.AppendVarint(protowire.AppendTag(record, 2, protowire.VarintType), uint64(r.Checksum))
	if r.Data != nil {
		record = protowire.AppendBytes(protowire.AppendTag(record, 3, protowire.BytesType), r.Data)
	}
	length, padding := uint64(len(record)), (8-len(record)%8)%8
	if padding != 0 {
		length |= uint64(0x80|padding) << 56
	}
	text := append(binary.LittleEndian.AppendUint64(nil, length), record...)
	return append(text, make([]byte, padding)...)
}
