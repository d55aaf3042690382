// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"bytes"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/internal/raftlog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// logEntries adds entries to the log of the data. Each puts the same value.
func (d *data) logEntries(t *testing.T, first, last uint64) {
	t.Helper()
	name := filepath.Join(raftlog.Dir(d.dir), "0000000000000000-0000000000000000.wal")
	text, err := os.ReadFile(name)
	must(t, err)
	text = bytes.TrimRight(text, "\x00")
	text = append(text, make([]byte, (8-len(text)%8)%8)...)
	id, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: proto.Uint64(memberID), ClusterID: proto.Uint64(clusterID)})
	must(t, err)
	sum := crc32.Update(0, raftlog.Castagnoli, id)
	put, err := proto.Marshal(&etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 1}, Put: &etcdserverpb.PutRequest{Key: []byte("k")}})
	must(t, err)
	for i := first; i <= last; i++ {
		entry, err := proto.Marshal(&raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: proto.Uint64(8), Index: &i, Data: put})
		must(t, err)
		sum = crc32.Update(sum, raftlog.Castagnoli, entry)
		text = append(text, frame(raftlog.Entry, sum, entry)...)
	}
	must(t, os.WriteFile(name, append(text, make([]byte, 4096)...), 0o600))
}

// etcd acknowledges a write when a quorum has it in the log. A member that has it there may not have applied it.
func TestASnapshotHasTheEntriesThatTheDatabaseLacks(t *testing.T) {
	d := newData(t)
	d.logEntries(t, 80, 99) // of the term 8; the database is of the term 7
	server, _ := newServer(d.dir, closedPort)
	ep := start(t, server)
	status, err := connect(t, ep, etcd.Credentials{}).Status(soon(t))
	must(t, err)
	if status.RaftIndex != 99 || status.RaftApplied != 90 || status.RaftTerm != 8 {
		t.Errorf("%+v", status)
	}
	taken, got := take(t, snapshot.Source{Endpoints: []etcd.Endpoint{ep}})
	if taken.Unapplied != 9 {
		t.Errorf("it is said to have %d entries that are not applied", taken.Unapplied)
	}
	want := d.snapshot(t)
	if !bytes.HasPrefix(got, want) {
		t.Error("the database differs from what etcd would send")
	}
	entries, err := raftlog.OpenAppendix(bytes.NewReader(got), int64(len(want)), int64(len(got)-etcd.SnapshotTrailer))
	must(t, err)
	n := 0
	for _, err := range entries.Requests() {
		must(t, err)
		n++
	}
	if n != 9 {
		t.Errorf("there are %d entries, want those from 91 to 99", n)
	}
}

func TestALogThatLacksEntriesDoesNotKeepTheDatabaseBack(t *testing.T) {
	d := newData(t)
	d.logEntries(t, 95, 99)
	server, log := newServer(d.dir, closedPort)
	_, got := take(t, snapshot.Source{Endpoints: []etcd.Endpoint{start(t, server)}})
	if len(got) != len(d.snapshot(t))+etcd.SnapshotTrailer {
		t.Errorf("the snapshot has %d bytes", len(got))
	}
	if !strings.Contains(log.String(), "the entries from 91 to 94 are missing") {
		t.Errorf("the log is %s", log)
	}
}

// Recoveries compare the terms of survivors. A database of etcd 3.4 has none.
func TestTheTermOfAnAppliedLogComesFromTheLog(t *testing.T) {
	d := newData(t)
	d.logEntries(t, 80, 90) // all are in the database
	must(t, d.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(termKey) }))
	server, _ := newServer(d.dir, closedPort)
	status, err := connect(t, start(t, server), etcd.Credentials{}).Status(soon(t))
	must(t, err)
	if status.RaftIndex != 90 || status.RaftTerm != 8 {
		t.Errorf("%+v", status)
	}
}
