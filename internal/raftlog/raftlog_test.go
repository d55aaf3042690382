// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// log is a log that a test writes.
type log struct {
	dir  string // of the data
	sum  uint32
	text []byte
	file string
}

func newLog(t *testing.T) *log {
	t.Helper()
	l := &log{dir: t.TempDir()}
	must(t, os.MkdirAll(Dir(l.dir), 0o700))
	l.next(t, 0, 0)
	return l
}

// next begins a file.
func (l *log) next(t *testing.T, number, index uint64) {
	t.Helper()
	l.text, l.file = nil, filepath.Join(Dir(l.dir), fmt.Sprintf("%016x-%016x.wal", number, index))
	l.text = append(l.text, Record{Kind: Checksum, Checksum: l.sum}.Frame()...)
	l.add(t, Metadata, []byte("who"))
}

func (l *log) add(t *testing.T, kind uint64, data []byte) {
	t.Helper()
	l.sum = crc32.Update(l.sum, Castagnoli, data)
	l.text = append(l.text, Record{kind, l.sum, data}.Frame()...)
	must(t, os.WriteFile(l.file, append(bytes.Clone(l.text), make([]byte, 4096)...), 0o600)) // etcd allocates ahead
}

// entry adds an entry that puts a value.
func (l *log) entry(t *testing.T, term, index uint64, value string) {
	t.Helper()
	l.add(t, Entry, marshal(t, &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: &term, Index: &index, Data: put(t, value)}))
}

func (l *log) state(t *testing.T, term, commit uint64) {
	t.Helper()
	vote := uint64(1)
	l.add(t, State, marshal(t, &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}))
}

func put(t *testing.T, value string) []byte {
	t.Helper()
	return marshal(t, &etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: 7}, Put: &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte(value)}})
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	text, err := proto.Marshal(m)
	must(t, err)
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// requests are what a tail says after its way through a snapshot.
func requests(t *testing.T, tail *Tail) iter.Seq2[[]byte, error] {
	t.Helper()
	appendix, err := io.ReadAll(tail.Appendix())
	must(t, err)
	if int64(len(appendix)) != tail.AppendixSize() || len(appendix)%512 != 0 {
		t.Errorf("the appendix has %d bytes, and should have %d", len(appendix), tail.AppendixSize())
	}
	const before = 1024
	snapshot := append(make([]byte, before), appendix...)
	a, err := OpenAppendix(bytes.NewReader(snapshot), before, int64(len(snapshot)))
	if errors.Is(err, ErrNoAppendix) {
		return func(func([]byte, error) bool) {}
	}
	must(t, err)
	return a.Requests()
}

func values(t *testing.T, tail *Tail) string {
	t.Helper()
	var list []string
	for data, err := range requests(t, tail) {
		must(t, err)
		var r etcdserverpb.InternalRaftRequest
		must(t, proto.Unmarshal(data, &r))
		list = append(list, string(r.GetPut().GetValue()))
	}
	return strings.Join(list, " ")
}

func TestTheTailIsWhatTheDatabaseLacks(t *testing.T) {
	for name, test := range map[string]struct {
		write func(*log)
		after uint64
		want  string
		last  uint64
		fails string
	}{
		"all":     {func(*log) {}, 0, "a b c", 3, ""},
		"the end": {func(*log) {}, 2, "c", 3, ""},
		"nothing": {func(*log) {}, 3, "", 3, ""},
		"a new leader has replaced entries": {func(l *log) {
			l.state(t, 2, 1)
			l.entry(t, 2, 2, "x")
		}, 0, "a x", 2, ""},
		"several files": {func(l *log) {
			l.next(t, 1, 4)
			l.entry(t, 1, 4, "d")
			l.next(t, 2, 5)
			l.entry(t, 1, 5, "e")
		}, 2, "c d e", 5, ""},
		"a file before is gone": {func(l *log) {
			l.next(t, 1, 4)
			l.entry(t, 1, 4, "d")
			must(t, os.Remove(filepath.Join(Dir(l.dir), fmt.Sprintf("%016x-%016x.wal", 0, 0))))
		}, 3, "d", 4, ""},
		"an earlier entry is gone": {func(l *log) {
			l.next(t, 1, 4)
			l.entry(t, 1, 4, "d")
			must(t, os.Remove(filepath.Join(Dir(l.dir), fmt.Sprintf("%016x-%016x.wal", 0, 0))))
		}, 2, "", 2, "the entries from 3 to 3 are missing"},
		"a file in between is gone": {func(l *log) {
			l.sum++
			l.next(t, 2, 5)
		}, 0, "a b c", 3, "does not continue"},
		"the last record is not complete": {func(l *log) {
			must(t, os.WriteFile(l.file, append(l.text[:len(l.text)-8], make([]byte, 512)...), 0o600))
		}, 0, "a b", 2, ""},
		"the file ends in the last record": {func(l *log) {
			must(t, os.WriteFile(l.file, l.text[:len(l.text)-3], 0o600))
		}, 0, "a b", 2, ""},
		"no log": {func(l *log) { must(t, os.Remove(l.file)) }, 0, "", 0, "no write-ahead log"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t)
			for i, value := range []string{"a", "b", "c"} {
				l.entry(t, 1, uint64(i)+1, value)
			}
			test.write(l)
			tail, err := ReadTail(l.dir, test.after)
			t.Cleanup(func() { tail.Close() })
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("the error is %v", err)
			}
			if got := values(t, tail); got != test.want || tail.Last() != test.last {
				t.Errorf("the tail is %q up to %d, want %q up to %d", got, tail.Last(), test.want, test.last)
			}
		})
	}
}

func TestRequestsAreAppendedAsCommitted(t *testing.T) {
	l := newLog(t)
	for i := range uint64(300) {
		l.entry(t, 3, i+1, strings.Repeat("v", int(i)))
	}
	tail, err := ReadTail(l.dir, 100)
	must(t, err)
	defer tail.Close()
	fresh := newLog(t)
	fresh.entry(t, 1, 1, "in place of a new member")
	fresh.state(t, 1, 1)
	count, last, err := Append(fresh.dir, requests(t, tail))
	if err != nil || count != 200 || last != 201 {
		t.Fatalf("%d requests up to %d, %v", count, last, err)
	}
	again, err := ReadTail(fresh.dir, 1)
	must(t, err)
	defer again.Close()
	if values(t, again) != values(t, tail) {
		t.Error("the requests in the new log are others")
	}
	file, err := os.Open(fresh.file)
	must(t, err)
	defer file.Close()
	if e, err := readEnd(file); err != nil || e.state.GetCommit() != 201 || e.state.GetTerm() != 1 || e.state.GetVote() != 1 {
		t.Errorf("the end of the log is %+v, %v", e, err)
	}
}

func TestNothingIsAppendedToAnotherLog(t *testing.T) {
	none := func(func([]byte, error) bool) {}
	used := newLog(t)
	used.entry(t, 1, 1, "a")
	used.state(t, 1, 1)
	used.entry(t, 1, 2, "b")
	if _, _, err := Append(used.dir, none); err == nil {
		t.Error("its last entry is not committed, and there is no error")
	}
	used.state(t, 1, 2)
	if _, last, err := Append(used.dir, none); err != nil || last != 2 {
		t.Errorf("the last entry is %d, %v", last, err)
	}
	used.next(t, 1, 3)
	used.add(t, Metadata, []byte("who"))
	if _, _, err := Append(used.dir, none); err == nil {
		t.Error("it has two files, and there is no error")
	}
}

func TestWhatConcernsTheFormerMembersIsLeftOut(t *testing.T) {
	header := &etcdserverpb.RequestHeader{ID: 7}
	for name, test := range map[string]struct {
		entry *raftpb.Entry
		keeps bool
	}{
		"a write":                 {&raftpb.Entry{Data: put(t, "x")}, true},
		"the end of a lease":      {&raftpb.Entry{Data: marshal(t, &etcdserverpb.InternalRaftRequest{Header: header, LeaseRevoke: &etcdserverpb.LeaseRevokeRequest{ID: 1}})}, true},
		"a user":                  {&raftpb.Entry{Data: marshal(t, &etcdserverpb.InternalRaftRequest{Header: header, AuthUserAdd: &etcdserverpb.AuthUserAddRequest{Name: "u"}})}, true},
		"a new leader":            {&raftpb.Entry{}, false},
		"a member":                {&raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Data: put(t, "x")}, false},
		"the version":             {&raftpb.Entry{Data: marshal(t, &etcdserverpb.InternalRaftRequest{Header: header, ClusterVersionSet: &membershippb.ClusterVersionSetRequest{Ver: "3.6.0"}})}, false},
		"the name of a member":    {&raftpb.Entry{Data: marshal(t, &etcdserverpb.InternalRaftRequest{Header: header, ClusterMemberAttrSet: &membershippb.ClusterMemberAttrSetRequest{Member_ID: 1}})}, false},
		"a request of the API v2": {&raftpb.Entry{Data: []byte("\x08\x07\x12\x03PUT\x1a\x0c/0/members/1\x22\x02{}")}, false},
	} {
		if got := isRequest(test.entry); got != test.keeps {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestADamagedAppendixIsAnError(t *testing.T) {
	l := newLog(t)
	l.entry(t, 1, 1, "a")
	l.entry(t, 1, 2, "b")
	tail, err := ReadTail(l.dir, 0)
	must(t, err)
	defer tail.Close()
	appendix, err := io.ReadAll(tail.Appendix())
	must(t, err)
	if _, err := OpenAppendix(bytes.NewReader(appendix), 0, headerSize); err == nil {
		t.Error("the entries are cut off, and there is no error")
	}
	if _, err := OpenAppendix(bytes.NewReader(appendix), 0, headerSize-1); !errors.Is(err, ErrNoAppendix) {
		t.Errorf("without a header: %v", err)
	}
	broken := slices.Replace(bytes.Clone(appendix), int(headerSize)+8, int(headerSize)+10, 0xff, 0xff)
	a, err := OpenAppendix(bytes.NewReader(broken), 0, int64(len(broken)))
	must(t, err)
	for _, err := range a.Requests() {
		if err != nil {
			return
		}
	}
	t.Error("an entry is damaged, and there is no error")
}

// A database of etcd 3.4 does not say of which term its last entry is.
func TestTheTermOfTheLastEntryIsKnownWithoutATail(t *testing.T) {
	for name, test := range map[string]struct {
		write func(*log)
		after uint64
		want  uint64
	}{
		"in the last file": {func(*log) {}, 3, 7},
		"at the end of the file before": {func(l *log) {
			l.next(t, 1, 4)
		}, 3, 7},
		"a tail": {func(l *log) {
			l.next(t, 1, 4)
			l.entry(t, 8, 4, "d")
		}, 3, 8},
		"it is gone": {func(l *log) {
			must(t, os.Remove(l.file))
			l.next(t, 1, 4)
		}, 3, 0},
		"the file before is damaged": {func(l *log) {
			must(t, os.WriteFile(l.file, nil, 0o600))
			l.next(t, 1, 4)
		}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t)
			for i := range uint64(3) {
				l.entry(t, 5+i, i+1, "v")
			}
			test.write(l)
			tail, err := ReadTail(l.dir, test.after)
			must(t, err)
			defer tail.Close()
			if got := tail.LastTerm(); got != test.want {
				t.Errorf("the term is %d, want %d", got, test.want)
			}
		})
	}
}
