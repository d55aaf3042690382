//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

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

// truth is what etcd's own client saw of a life: each change since the first revision. It shares
// no code with the recorder, the log and the restore.
type truth struct {
	mu      sync.Mutex
	changes []seen
	last    int64
	err     error
}

// seen is a record as etcd stores it.
type seen struct {
	main, sub int64
	tombstone bool
	kv        *mvccpb.KeyValue
}

// watch follows a life until the test ends.
func watch(t *testing.T, client *clientv3.Client) *truth {
	t.Helper()
	truth := &truth{last: 1}
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

func (h *truth) add(resp clientv3.WatchResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = cmp.Or(h.err, resp.Err())
	for _, e := range resp.Events {
		c := seen{main: e.Kv.ModRevision, tombstone: e.Type == clientv3.EventTypeDelete, kv: e.Kv}
		if n := len(h.changes); n > 0 && h.changes[n-1].main == c.main {
			c.sub = h.changes[n-1].sub + 1
		}
		h.changes, h.last = append(h.changes, c), c.main
	}
}

// await waits until a revision was seen.
func (h *truth) await(t *testing.T, revision int64) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		last, err := h.last, h.err
		h.mu.Unlock()
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

// at returns what lives at a revision, in the order of the keys.
func (h *truth) at(revision int64) []seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	live := map[string]seen{}
	for _, c := range h.changes {
		switch {
		case c.main > revision:
		case c.tombstone:
			delete(live, string(c.kv.Key))
		default:
			live[string(c.kv.Key)] = c
		}
	}
	var all []seen
	for _, c := range live {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b seen) int { return strings.Compare(string(a.kv.Key), string(b.kv.Key)) })
	return all
}

// hash is etcd's HashKV at a revision, after a compaction; 0: none. It is false if nothing lives:
// etcd then also counts what its compaction has not removed yet.
func (h *truth) hash(t *testing.T, revision, compacted int64) (uint32, bool) {
	t.Helper()
	live := h.at(revision)
	kept := map[[2]int64]bool{}
	for _, c := range live {
		kept[[2]int64{c.main, c.sub}] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write([]byte("key"))
	for _, c := range h.changes {
		if c.main > revision || c.main <= compacted && !kept[[2]int64{c.main, c.sub}] {
			continue
		}
		key := binary.BigEndian.AppendUint64(nil, uint64(c.main))
		key = binary.BigEndian.AppendUint64(append(key, '_'), uint64(c.sub))
		content := c.kv
		if c.tombstone {
			key, content = append(key, 't'), &mvccpb.KeyValue{Key: c.kv.Key}
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
