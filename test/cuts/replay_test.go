//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/internal/raftlog"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// applyLog learns what the survivor had in its log: etcd itself applies all of it on a copy of its data, as
// if a quorum had committed it. From then on, that is the truth.
func (c *cut) applyLog(t *testing.T) {
	t.Helper()
	file, err := os.Open(filepath.Join(c.data, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	span, err := rewind.ReadSpan(file)
	if err != nil {
		t.Fatal(err)
	}
	c.applied, c.has = c.has, span.Newest-c.bump
	if c.has < c.applied {
		t.Errorf("revision %d is restored, and the survivor had applied %d", c.has, c.applied)
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(data, os.DirFS(c.survivor.Dir())); err != nil {
		t.Fatal(err)
	}
	last := commitAll(t, data)
	flags := append(slices.Clone(quick), "--force-new-cluster")
	reference := c.release.Start(t, members.Options{Data: data, TLS: c.tls, Flags: flags})
	client := reference.Client(t)
	truth := members.Watch(t, client)
	truth.Await(t, c.has)
	c.truths[c.survivor] = truth
	members.Await(t, "all entries are applied", func(ctx context.Context) error { // not all raise the revision
		status, err := client.Status(ctx, reference.Members[0].URL)
		if err == nil && status.RaftAppliedIndex < last {
			return fmt.Errorf("entry %d is applied, not %d", status.RaftAppliedIndex, last)
		}
		return err
	})
	members.Commit(t, client)
	reference.Members[0].Kill(t)
	c.compareLeases(t, data)
}

// commitAll adds a record to a log that says that all its entries are committed, and returns the index of the last one.
func commitAll(t *testing.T, data string) (last uint64) {
	t.Helper()
	names, err := raftlog.Files(raftlog.Dir(data))
	if err != nil {
		t.Fatal(err)
	}
	var state raftpb.HardState
	var at uint64
	var sum uint32
	name := names[len(names)-1]
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at = 0
		for from := bytes.NewReader(text); ; {
			r, size, err := raftlog.ReadRecord(from, 1<<30)
			if errors.Is(err, raftlog.ErrNoLog) || err == nil && r.Kind != raftlog.Checksum && r.Checksum != crc32.Update(sum, raftlog.Castagnoli, r.Data) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch sum = r.Checksum; r.Kind {
			case raftlog.Entry:
				var entry raftpb.Entry
				err = proto.Unmarshal(r.Data, &entry)
				last = entry.GetIndex()
			case raftlog.State:
				err = proto.Unmarshal(r.Data, &state)
			}
			if err != nil {
				t.Fatal(err)
			}
			at += uint64(size)
		}
	}
	state.Commit = &last
	text, err := proto.Marshal(&state)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	record := raftlog.Record{Kind: raftlog.State, Checksum: crc32.Update(sum, raftlog.Castagnoli, text), Data: text}
	if err := file.Truncate(int64(at)); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(record.Frame()); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return last
}

// compareLeases compares the leases, users and roles, which raise no revision, in the files of the restored
// member and of one that has applied the whole log of the survivor. Both may have ended leases of a second.
func (c *cut) compareLeases(t *testing.T, data string) {
	t.Helper()
	want, got := buckets(t, data), buckets(t, c.data)
	brief := func(key, _ string) bool { return c.brief(key) }
	for name, pairs := range want {
		if name == "lease" {
			maps.DeleteFunc(pairs, brief)
			maps.DeleteFunc(got[name], brief)
		}
		if !maps.Equal(got[name], pairs) {
			t.Errorf("in %s there is %q, and the survivor had %q", name, got[name], pairs)
		}
	}
	if len(want["lease"]) == 0 && len(c.writers.ttls) > 20 {
		t.Error("no lease is left")
	}
}

// brief reports whether a lease may have ended: it lives for a second, or nobody knows for how long.
func (c *cut) brief(key string) bool {
	return len(key) != 8 || c.writers.ttls[clientv3.LeaseID(binary.BigEndian.Uint64([]byte(key)))] <= 1
}
