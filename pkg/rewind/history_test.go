// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// history is a random life of a store, with its truth at each revision.
type history struct {
	records  map[string]string            // the bucket of keys
	truth    map[int64]map[string]*change // the live keys at each revision
	leases   map[int64]int64              // the time to live of those that have not ended
	revision int64
	span     Span
}

type change struct {
	record string
	kv     *mvccpb.KeyValue
}

func recordKey(main, sub int64, tombstone bool) string {
	key := binary.BigEndian.AppendUint64(nil, uint64(main))
	key = binary.BigEndian.AppendUint64(append(key, '_'), uint64(sub))
	if tombstone {
		key = append(key, 't')
	}
	return string(key)
}

func encoded(t testing.TB, message proto.Message) string {
	t.Helper()
	text, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newHistory makes transactions with puts and deletions, leases that end, and compactions, as
// etcd stores them.
func newHistory(t testing.TB, seed uint64, transactions int) *history {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	h := &history{records: map[string]string{}, truth: map[int64]map[string]*change{1: {}}, leases: map[int64]int64{}, revision: 1, span: Span{Oldest: 1, Newest: 1}}
	state := map[string]*change{}
	for range transactions {
		if rng.IntN(4) == 0 {
			h.leases[rng.Int64()] = 1 + rng.Int64N(1000)
		}
		var changes []string
		for i := range 1 + rng.IntN(1+rng.IntN(9)) {
			changes = append(changes, fmt.Sprintf("%d-key-%d", i, rng.IntN(15)))
		}
		var ended int64
		if rng.IntN(6) == 0 {
			ended = h.anyLease(rng)
			delete(h.leases, ended)
			changes = nil
			for _, key := range slices.Sorted(maps.Keys(state)) {
				if state[key].kv.Lease == ended && ended != 0 {
					changes = append(changes, key)
				}
			}
		}
		h.revision++
		var sub int64
		for _, key := range changes {
			if ended != 0 || rng.IntN(4) == 0 {
				if state[key] == nil {
					continue
				}
				h.records[recordKey(h.revision, sub, true)] = encoded(t, &mvccpb.KeyValue{Key: []byte(key)})
				delete(state, key)
			} else {
				kv := &mvccpb.KeyValue{Key: []byte(key), CreateRevision: h.revision, ModRevision: h.revision, Version: 1, Value: make([]byte, rng.IntN(1+rng.IntN(2_000)))}
				if there := state[key]; there != nil {
					kv.CreateRevision, kv.Version = there.kv.CreateRevision, there.kv.Version+1
				}
				if rng.IntN(4) == 0 {
					kv.Lease = h.anyLease(rng)
				}
				state[key] = &change{recordKey(h.revision, sub, false), kv}
				h.records[state[key].record] = encoded(t, kv)
			}
			sub++
		}
		if sub == 0 {
			h.revision-- // etcd keeps the revision if nothing changes
			continue
		}
		h.truth[h.revision] = maps.Clone(state)
		if rng.IntN(40) == 0 {
			h.compact(h.span.Oldest + rng.Int64N(h.revision-h.span.Oldest+1))
		}
	}
	h.span.Newest = h.revision
	return h
}

// anyLease returns a lease that has not ended; 0: there is none.
func (h *history) anyLease(rng *rand.Rand) int64 {
	if len(h.leases) == 0 {
		return 0
	}
	return slices.Sorted(maps.Keys(h.leases))[rng.IntN(len(h.leases))]
}

// compact removes what no revision from this one on needs.
func (h *history) compact(revision int64) {
	h.span.Oldest = revision
	live := map[string]bool{}
	for _, there := range h.truth[revision] {
		live[there.record] = true
	}
	for key := range h.records {
		if r, _ := parseRecord([]byte(key)); r.main <= revision && !live[key] {
			delete(h.records, key)
		}
	}
	maps.DeleteFunc(h.truth, func(at int64, _ map[string]*change) bool { return at < revision })
}

// snapshot writes the history as etcd's snapshot.
func (h *history) snapshot(t testing.TB) string {
	t.Helper()
	buckets := map[string]map[string]string{
		"key": h.records, "lease": {}, "meta": {"consistent_index": "12345678"},
		"auth": {"authRevision": "00000007"}, "authUsers": {"root": "x"}, "alarm": {}, "members": {"8e9e05c52164694d": "{}"},
	}
	for id, ttl := range h.leases {
		buckets["lease"][string(leaseKey(id))] = fmt.Sprintf("ID %d TTL %d", id, ttl)
	}
	if h.span.Oldest > 1 {
		buckets["meta"]["scheduledCompactRev"] = string(compactionAt(h.span.Oldest))
		buckets["meta"]["finishedCompactRev"] = string(compactionAt(h.span.Oldest / 2)) // under way
	}
	name := filepath.Join(t.TempDir(), "snapshot")
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for bucket, content := range buckets {
		err = db.Update(func(tx *bbolt.Tx) error {
			into, err := tx.CreateBucket([]byte(bucket))
			for key, value := range content {
				if err == nil {
					err = into.Put([]byte(key), []byte(value))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	sealed(t, name)
	return name
}

func sealed(t testing.TB, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if err := os.WriteFile(name, append(text, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contentOf reads all buckets of a snapshot.
func contentOf(t testing.TB, name string) map[string]map[string]string {
	t.Helper()
	source, err := open(name, -1)
	if err == nil {
		err = verify(source.snapshot())
		source.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(name, 0, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	content := map[string]map[string]string{}
	err = db.View(func(tx *bbolt.Tx) error {
		for problem := range tx.Check() {
			t.Errorf("%s: %v", name, problem)
		}
		return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
			content[string(bucket)] = map[string]string{}
			return b.ForEach(func(k, v []byte) error {
				content[string(bucket)][string(k)] = string(v)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
