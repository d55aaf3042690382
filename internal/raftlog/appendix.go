// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raftlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// A snapshot can have an appendix: the tail of the log, between the last page of the database and the
// sha256. bbolt ignores what follows the last page, so all tools of etcd accept such a snapshot.
//
// It begins with a header: the magic, the index after which the tail begins, the number of entries, and
// the bytes of all records. Then come the records, and zeros up to a multiple of alignment.
const (
	magic      = "etcd raft tail 1"
	headerSize = int64(len(magic) + 3*8)
	// alignment is what etcd's tools expect of the size of a snapshot without the sha256.
	alignment = 512
)

// ErrNoAppendix means that a snapshot has none.
var ErrNoAppendix = errors.New("the snapshot has no entries of a log")

// AppendixSize is the size of the appendix; 0: there are no entries, and no appendix.
func (t *Tail) AppendixSize() int64 {
	if len(t.places) == 0 {
		return 0
	}
	size := headerSize + t.size()
	return size + (alignment-size%alignment)%alignment
}

// Appendix reads the appendix.
func (t *Tail) Appendix() io.Reader {
	if len(t.places) == 0 {
		return bytes.NewReader(nil)
	}
	header := []byte(magic)
	for _, n := range []uint64{t.after, uint64(len(t.places)), uint64(t.size())} { // not negative
		header = binary.LittleEndian.AppendUint64(header, n)
	}
	padding := make([]byte, t.AppendixSize()-headerSize-t.size())
	return io.MultiReader(bytes.NewReader(header), t.records(), bytes.NewReader(padding))
}

// Appended are the entries in the appendix of a snapshot.
type Appended struct {
	from         io.ReaderAt
	at, size     int64
	after, count uint64
}

// OpenAppendix reads the header of an appendix. The database ends at at, and the sha256 begins at end.
// The error is ErrNoAppendix, or that of the reader.
func OpenAppendix(snapshot io.ReaderAt, at, end int64) (*Appended, error) {
	if end-at < headerSize {
		return nil, ErrNoAppendix
	}
	header := make([]byte, headerSize)
	if _, err := snapshot.ReadAt(header, at); err != nil {
		return nil, err
	}
	numbers, found := bytes.CutPrefix(header, []byte(magic))
	if !found {
		return nil, ErrNoAppendix
	}
	a := &Appended{from: snapshot, at: at + headerSize}
	a.after, a.count = binary.LittleEndian.Uint64(numbers), binary.LittleEndian.Uint64(numbers[8:])
	size := binary.LittleEndian.Uint64(numbers[16:])
	if size > uint64(end-a.at) { // not negative
		return nil, fmt.Errorf("the entries of the log have %d bytes, and the snapshot has %d", size, end-a.at)
	}
	a.size = int64(size)
	return a, nil
}

// Requests are the data of the entries that clients and leases have caused, in their order. An error is
// the last value.
func (a *Appended) Requests() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		from := bufio.NewReaderSize(io.NewSectionReader(a.from, a.at, a.size), 1<<20)
		for i := range a.count {
			data, err := a.next(from, a.after+1+i)
			if err != nil {
				yield(nil, err)
				return
			}
			if isRequest(data) && !yield(data.GetData(), nil) {
				return
			}
		}
	}
}

func (a *Appended) next(from io.Reader, index uint64) (*raftpb.Entry, error) {
	r, _, err := ReadRecord(from, uint64(a.size)) // not negative
	if err != nil {
		return nil, fmt.Errorf("the raft entry %d: %w", index, err)
	}
	entry := &raftpb.Entry{}
	if err := proto.Unmarshal(r.Data, entry); err != nil {
		return nil, fmt.Errorf("the raft entry %d: %w", index, err)
	}
	if r.Kind != Entry || entry.GetIndex() != index {
		return nil, fmt.Errorf("the raft entry %d is missing in the snapshot", index)
	}
	return entry, nil
}

// isRequest reports whether an entry changes more than the membership or the version of the cluster,
// which are other ones after a restore. Entries that are no InternalRaftRequest are of etcd's API v2, by
// which members of etcd 3.5 state their names. etcd 3.7 refuses these.
func isRequest(entry *raftpb.Entry) bool {
	if entry.GetType() != raftpb.EntryNormal || len(entry.GetData()) == 0 {
		return false
	}
	var r etcdserverpb.InternalRaftRequest
	if proto.Unmarshal(entry.GetData(), &r) != nil || r.GetHeader() == nil {
		return false
	}
	if r.GetClusterVersionSet() != nil || r.GetClusterMemberAttrSet() != nil || r.GetDowngradeInfoSet() != nil || r.GetDowngradeVersionTest() != nil {
		return false
	}
	return r.GetPut() != nil || r.GetDeleteRange() != nil || r.GetTxn() != nil || r.GetCompaction() != nil ||
		r.GetLeaseGrant() != nil || r.GetLeaseRevoke() != nil || r.GetLeaseCheckpoint() != nil || r.GetAlarm() != nil ||
		r.GetAuthEnable() != nil || r.GetAuthDisable() != nil || r.GetAuthenticate() != nil ||
		r.GetAuthUserAdd() != nil || r.GetAuthUserDelete() != nil || r.GetAuthUserChangePassword() != nil ||
		r.GetAuthUserGrantRole() != nil || r.GetAuthUserRevokeRole() != nil ||
		r.GetAuthRoleAdd() != nil || r.GetAuthRoleDelete() != nil ||
		r.GetAuthRoleGrantPermission() != nil || r.GetAuthRoleRevokePermission() != nil
}
