//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/test/members"
)

// patience is how long a writer waits for an answer.
const patience = time.Second

// writers write at once, and note what etcd acknowledges.
type writers struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	acked map[int64]map[string]written // by revision and key
	sent  map[string]string            // the key of each value, acknowledged or not
	ttls  map[clientv3.LeaseID]int64   // of the leases that etcd has granted
	// unanswered is how many requests ended without an answer.
	unanswered int
}

// written is what a request does to a key. The value is unique, and "" for a deletion.
type written struct {
	value string
	lease int64
}

// startWriters starts writers whose requests depend on the seed alone.
func startWriters(t *testing.T, c *members.Cluster, seed uint64, n int) *writers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &writers{stop: cancel, acked: map[int64]map[string]written{}, sent: map[string]string{}, ttls: map[clientv3.LeaseID]int64{}}
	for i := range n {
		client := c.Client(t)
		rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
		w.running.Go(func() {
			one := writer{w: w, client: client, rng: rng, name: i}
			for ctx.Err() == nil {
				one.step(ctx)
			}
		})
	}
	t.Cleanup(w.end)
	return w
}

// end stops the writers, and waits for them.
func (w *writers) end() {
	w.stop()
	w.running.Wait()
}

// last is the highest revision that was acknowledged.
func (w *writers) last() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := int64(0)
	for revision := range w.acked {
		last = max(last, revision)
	}
	return last
}

// writer is one of them. It alone uses its leases; the keys belong to all.
type writer struct {
	w      *writers
	client *clientv3.Client
	rng    *rand.Rand
	name   int
	values int
	leases []clientv3.LeaseID
}

func (o *writer) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	switch what := o.rng.IntN(20); {
	case what == 0:
		err = o.grant(ctx)
	case what == 1 && len(o.leases) > 0:
		i := o.rng.IntN(len(o.leases))
		_, err = o.client.Revoke(ctx, o.leases[i])
		o.leases = slices.Delete(o.leases, i, i+1)
	case what == 2:
		err = o.deleteMany(ctx)
	case what < 12:
		err = o.put(ctx)
	default:
		err = o.transact(ctx)
	}
	if err != nil {
		o.w.mu.Lock()
		o.w.unanswered++
		o.w.mu.Unlock()
	}
}

func (o *writer) grant(ctx context.Context) error {
	ttl := int64(1000 + o.rng.IntN(9000))
	if o.rng.IntN(3) == 0 {
		ttl = 1 // it ends by itself
	}
	lease, err := o.client.Grant(ctx, ttl)
	if err != nil {
		return err
	}
	o.leases = append(o.leases, lease.ID)
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	o.w.ttls[lease.ID] = ttl
	return nil
}

// flood writes more than the network holds for a frozen member: what it has not received is lost with the
// others.
func (w *writers) flood(t *testing.T, client *clientv3.Client, seed uint64) {
	t.Helper()
	o := writer{w: w, client: client, rng: rand.New(rand.NewPCG(seed, 99)), name: 99}
	for i, failed := 0, 0; i < 32; {
		ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
		key := fmt.Sprintf("key-flood-%d", i%4)
		value := o.value(key) + strings.Repeat("x", 1<<20)
		w.mu.Lock()
		w.sent[value] = key
		w.mu.Unlock()
		resp, err := client.Put(ctx, key, value)
		cancel()
		if err == nil {
			o.note(resp.Header.Revision, map[string]written{key: {value: value}})
			i++
			continue
		}
		if failed++; failed > 10 { // an election
			t.Fatal(err)
		}
	}
}

func (o *writer) key() string { return fmt.Sprintf("key-%02d", o.rng.IntN(60)) }

// value returns a value that no other request has.
func (o *writer) value(key string) string {
	o.values++
	size := []int{0, 0, 10, 100, 1_000, 10_000, 100_000}[o.rng.IntN(7)]
	value := fmt.Sprintf("#%d.%d.", o.name, o.values) + strings.Repeat("x", size)
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	o.w.sent[value] = key
	return value
}

// lease returns a lease that may have ended; 0: none.
func (o *writer) lease() clientv3.LeaseID {
	if len(o.leases) == 0 || o.rng.IntN(3) > 0 {
		return 0
	}
	return o.leases[o.rng.IntN(len(o.leases))]
}

func (o *writer) put(ctx context.Context) error {
	key := o.key()
	value, lease := o.value(key), o.lease()
	resp, err := o.client.Put(ctx, key, value, clientv3.WithLease(lease))
	if err == nil {
		o.note(resp.Header.Revision, map[string]written{key: {value, int64(lease)}})
	}
	return err
}

func (o *writer) deleteMany(ctx context.Context) error {
	resp, err := o.client.Delete(ctx, fmt.Sprintf("key-%d", o.rng.IntN(6)), clientv3.WithPrefix(), clientv3.WithPrevKV())
	if err != nil {
		return err
	}
	changes := map[string]written{}
	for _, kv := range resp.PrevKvs {
		changes[string(kv.Key)] = written{}
	}
	o.note(resp.Header.Revision, changes)
	return nil
}

func (o *writer) transact(ctx context.Context) error {
	changes, ops := map[string]written{}, map[string]clientv3.Op{}
	for range 1 + o.rng.IntN(5) {
		key := o.key()
		if o.rng.IntN(4) == 0 {
			changes[key], ops[key] = written{}, clientv3.OpDelete(key)
			continue
		}
		value, lease := o.value(key), o.lease()
		changes[key], ops[key] = written{value, int64(lease)}, clientv3.OpPut(key, value, clientv3.WithLease(lease))
	}
	var list []clientv3.Op
	keys := slices.Sorted(maps.Keys(ops))
	for _, key := range keys {
		list = append(list, ops[key])
	}
	resp, err := o.client.Txn(ctx).Then(list...).Commit()
	if err != nil {
		return err
	}
	for i, r := range resp.Responses {
		if d := r.GetResponseDeleteRange(); d != nil && d.Deleted == 0 {
			delete(changes, keys[i]) // it was not there
		}
	}
	o.note(resp.Header.Revision, changes)
	return nil
}

// note notes an acknowledgement. Without a change, the revision is that of another request.
func (o *writer) note(revision int64, changes map[string]written) {
	if len(changes) == 0 {
		return
	}
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	o.w.acked[revision] = changes
}
