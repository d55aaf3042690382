// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// identity is who a member is. etcd keeps the cluster's ID nowhere but in its write-ahead log.
type identity struct{ cluster, member uint64 }

// errNoLog means that a file of the write-ahead log does not begin as etcd writes it.
var errNoLog = errors.New("it does not begin like a write-ahead log of etcd")

// readIdentity reads the newest file of the write-ahead log. etcd repeats the identity at the
// beginning of each. The names are numbers of the same length.
func (s *Server) readIdentity() (identity, error) {
	dir := filepath.Join(s.DataDir, "member", "wal")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return identity{}, err
	}
	for _, entry := range slices.Backward(entries) {
		if filepath.Ext(entry.Name()) != ".wal" {
			continue // such as a file that etcd prepares
		}
		path := filepath.Join(dir, entry.Name())
		file, err := os.Open(path)
		if err != nil {
			return identity{}, err
		}
		defer file.Close()
		id, err := parseIdentity(file)
		if err != nil {
			return identity{}, fmt.Errorf("read %s: %w", path, err)
		}
		return id, nil
	}
	return identity{}, fmt.Errorf("there is no write-ahead log in %s", dir)
}

// Types of records (server/storage/wal/wal.go).
const (
	recordMetadata = 1
	recordChecksum = 4
)

// parseIdentity reads the first two records of a file: the checksum of all before, and the metadata.
func parseIdentity(from io.Reader) (identity, error) {
	first, err := readRecord(from)
	if err != nil {
		return identity{}, err
	}
	second, err := readRecord(from)
	if err != nil {
		return identity{}, err
	}
	if first.kind != recordChecksum || second.kind != recordMetadata || second.checksum != crc32.Update(first.checksum, castagnoli, second.data) {
		return identity{}, errNoLog
	}
	var m etcdserverpb.Metadata
	if err := proto.Unmarshal(second.data, &m); err != nil || m.GetClusterID() == 0 || m.GetNodeID() == 0 {
		return identity{}, errNoLog
	}
	return identity{cluster: m.GetClusterID(), member: m.GetNodeID()}, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is etcd's walpb.Record.
type record struct {
	kind     uint64
	checksum uint32
	data     []byte
}

// mostRecord bounds a record. The first two have less than a hundred bytes.
const mostRecord = 4 << 10

// readRecord reads a record in its frame (server/storage/wal/decoder.go): 8 bytes, of which the
// lower seven are the size. The highest bit says that padding follows, and the lowest three of the
// same byte how much.
func readRecord(from io.Reader) (r record, err error) {
	var frame [8]byte
	if _, err := io.ReadFull(from, frame[:]); err != nil {
		return record{}, cut(err)
	}
	length := binary.LittleEndian.Uint64(frame[:])
	size, padding := length&(1<<56-1), uint64(0)
	if length>>63 == 1 {
		padding = length >> 56 & 7
	}
	if size == 0 || size > mostRecord {
		return record{}, errNoLog
	}
	text := make([]byte, size+padding)
	if _, err := io.ReadFull(from, text); err != nil {
		return record{}, cut(err)
	}
	for text = text[:size]; len(text) > 0; {
		field, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return record{}, errNoLog
		}
		text = text[n:]
		var value uint64
		switch {
		case kind == protowire.VarintType:
			value, n = protowire.ConsumeVarint(text)
		case field == 3 && kind == protowire.BytesType:
			r.data, n = protowire.ConsumeBytes(text)
		default:
			n = protowire.ConsumeFieldValue(field, kind, text)
		}
		if n < 0 {
			return record{}, errNoLog
		}
		text = text[n:]
		switch field {
		case 1:
			r.kind = value
		case 2:
			r.checksum = uint32(value) // as etcd wrote it
		}
	}
	return r, nil
}

// cut replaces the error of a file that ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errNoLog
	}
	return err
}
