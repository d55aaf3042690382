// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// Truth is what etcd's own client saw of a life: each change since the first revision. It shares
// no code with backups, logs and restores.
type Truth struct {
	mu      sync.Mutex
	changes []Change
	last    int64
	err     error
}

// Change is a record as etcd stores it: the Sub-th one of the revision Main.
type Change struct {
	Main, Sub int64
	Tombstone bool
	KV        *mvccpb.KeyValue
}

// Watch follows a life until the test ends.
func Watch(t testing.TB, client *clientv3.Client) *Truth {
	t.Helper()
	truth := &Truth{last: 1}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	changes := client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(1))
	go func() {
		defer close(done)
		for resp := range changes {
			truth.add(resp)
		}
	}()
	return truth
}

func (tr *Truth) add(resp clientv3.WatchResponse) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.err = cmp.Or(tr.err, resp.Err())
	for _, e := range resp.Events {
		c := Change{Main: e.Kv.ModRevision, Tombstone: e.Type == clientv3.EventTypeDelete, KV: e.Kv}
		if n := len(tr.changes); n > 0 && tr.changes[n-1].Main == c.Main {
			c.Sub = tr.changes[n-1].Sub + 1
		}
		tr.changes, tr.last = append(tr.changes, c), c.Main
	}
}

// Last is the last revision that was seen.
func (tr *Truth) Last() int64 {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.last
}

// Changes are all changes that were seen, by their revisions.
func (tr *Truth) Changes() map[int64][]Change {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	all := map[int64][]Change{}
	for _, c := range tr.changes {
		all[c.Main] = append(all[c.Main], c)
	}
	return all
}

// Await waits until a revision was seen.
func (tr *Truth) Await(t testing.TB, revision int64) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		tr.mu.Lock()
		last, err := tr.last, tr.err
		tr.mu.Unlock()
		switch {
		case err != nil:
			t.Fatalf("the watch ended after revision %d: %v", last, err)
		case last >= revision:
			return
		case time.Now().After(end):
			t.Fatalf("the watch has seen revision %d, and not %d", last, revision)
		}
	}
}

// At returns what lives at a revision, in the order of the keys.
func (tr *Truth) At(revision int64) []Change {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	live := map[string]Change{}
	for _, c := range tr.changes {
		switch {
		case c.Main > revision:
		case c.Tombstone:
			delete(live, string(c.KV.Key))
		default:
			live[string(c.KV.Key)] = c
		}
	}
	var all []Change
	for _, c := range live {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(string(a.KV.Key), string(b.KV.Key)) })
	return all
}

// Hash is etcd's HashKV at a revision, after a compaction; 0: none. It is false if nothing lives:
// etcd then also counts what its compaction has not removed yet.
func (tr *Truth) Hash(t testing.TB, revision, compacted int64) (uint32, bool) {
	t.Helper()
	live := tr.At(revision)
	kept := map[[2]int64]bool{}
	for _, c := range live {
		kept[[2]int64{c.Main, c.Sub}] = true
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write([]byte("key"))
	for _, c := range tr.changes {
		if c.Main > revision || c.Main <= compacted && !kept[[2]int64{c.Main, c.Sub}] {
			continue
		}
		key := binary.BigEndian.AppendUint64(nil, uint64(c.Main))
		key = binary.BigEndian.AppendUint64(append(key, '_'), uint64(c.Sub))
		content := c.KV
		if c.Tombstone {
			key, content = append(key, 't'), &mvccpb.KeyValue{Key: c.KV.Key}
		}
		text, err := proto.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(key)
		sum.Write(text)
	}
	return sum.Sum32(), len(live) > 0
}
