//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// entryRecord is the type of a record with a raft entry in etcd's write-ahead log.
const entryRecord = 2

// logged returns the raft entries in the write-ahead log of a member that has ended, by their index.
// A later entry replaces an earlier one.
func logged(t *testing.T, data string) map[uint64][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "member", "wal", "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the write-ahead log is %q, %v", files, err)
	}
	slices.Sort(files)
	entries := map[uint64][]byte{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for len(text) >= 8 {
			// The lowest 56 bits are the length. The highest byte says how many bytes of padding follow.
			header := binary.LittleEndian.Uint64(text)
			length, padding := header&(1<<56-1), header>>56&0x7
			if header>>63 == 0 {
				padding = 0
			}
			if length == 0 || uint64(len(text)) < 8+length+padding {
				break // the rest is preallocated
			}
			addEntry(t, entries, text[8:8+length])
			text = text[8+length+padding:]
		}
	}
	return entries
}

func addEntry(t *testing.T, entries map[uint64][]byte, record []byte) {
	t.Helper()
	kind, content := uint64(0), []byte(nil)
	for len(record) > 0 {
		number, wire, n := protowire.ConsumeTag(record)
		if n < 0 {
			return // the write was not complete
		}
		record = record[n:]
		switch {
		case number == 1 && wire == protowire.VarintType:
			kind, n = protowire.ConsumeVarint(record)
		case number == 3 && wire == protowire.BytesType:
			content, n = protowire.ConsumeBytes(record)
		default:
			n = protowire.ConsumeFieldValue(number, wire, record)
		}
		if n < 0 {
			return
		}
		record = record[n:]
	}
	if kind != entryRecord {
		return
	}
	var entry raftpb.Entry
	if err := proto.Unmarshal(content, &entry); err != nil {
		return
	}
	for index := entry.GetIndex(); entries[index] != nil; index++ {
		delete(entries, index) // a new leader has replaced them
	}
	entries[entry.GetIndex()] = append([]byte{}, entry.GetData()...) // never nil
}
