//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// pace is the time between two operations of a client.
	pace = 100 * time.Millisecond
	// patience is how long a client waits for an answer.
	patience = 3 * time.Second
	// keyLife is how long clients use a key. The check of a history takes longer the more
	// operations without an answer one key has.
	keyLife = 20 * time.Second
	prefix  = "chaos/"
)

// clients are a cluster's clients, through its Service.
type clients struct {
	name    string // of the cluster: no two clusters have a key in common
	dial    func() (*clientv3.Client, error)
	history *history
	watch   *watched
	leases  *leases
	stop    context.CancelFunc // those that read and write
	done    sync.WaitGroup
	// stopWatch ends the watch, and watching waits for its end.
	stopWatch context.CancelFunc
	watching  sync.WaitGroup
	ended     atomic.Int64 // how long clients wrote, in nanoseconds; 0 while they do
}

func startClients(ctx context.Context, n int, seed uint64, name string, id uint64, dial func() (*clientv3.Client, error)) *clients {
	watching, stopWatch := context.WithCancel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	c := &clients{name: name, dial: dial, history: newHistory(), watch: newWatched(id), leases: newLeases(name), stop: cancel, stopWatch: stopWatch}
	for id := range n {
		c.done.Go(func() { c.run(ctx, id, rand.New(rand.NewPCG(seed, uint64(id)))) }) // the same for the same seed
	}
	c.done.Go(func() { c.leases.run(ctx, dial) })
	c.watching.Go(func() { c.watch.follow(watching, dial) })
	return c
}

// end stops the reads and writes, and waits for open answers.
func (c *clients) end() {
	c.ended.Store(int64(time.Since(c.history.start)))
	c.stop()
	c.done.Wait()
}

// wrote returns how long clients have written so far.
func (c *clients) wrote() time.Duration {
	if ended := c.ended.Load(); ended > 0 {
		return time.Duration(ended)
	}
	return time.Since(c.history.start)
}

// endWatch stops the watch.
func (c *clients) endWatch() {
	c.stopWatch()
	c.watching.Wait()
}

func (c *clients) run(ctx context.Context, id int, r *rand.Rand) {
	var client *clientv3.Client
	hangUp := func() {
		if client != nil {
			_ = client.Close()
			client = nil
		}
	}
	defer hangUp()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if client == nil {
			var err error
			if client, err = c.dial(); err != nil {
				continue
			}
		}
		asked := time.Now()
		if !c.operate(ctx, client, id, n, r) {
			hangUp() // a connection through a Service stays with its first member
			// An answer without a result may come at once, as from a full database. The check
			// of a history takes longer the more of them there are.
			select {
			case <-time.After(patience - time.Since(asked)):
			case <-ctx.Done():
			}
		}
	}
}

// operate does one operation and reports whether it was answered.
func (c *clients) operate(ctx context.Context, client *clientv3.Client, id, n int, r *rand.Rand) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	key := fmt.Sprintf("%s%s/%d/%d", prefix, c.name, time.Since(c.history.start)/keyLife, r.IntN(3))
	value := fmt.Sprintf("%d-%d", id, n)
	switch r.IntN(5) {
	case 0, 1:
		end := c.history.call(id, op{put, key, "", value})
		_, err := client.Put(ctx, key, value)
		if err != nil {
			end(outcome{unknown: true})
			return false
		}
		end(outcome{})
	case 2:
		end := c.history.call(id, op{get, key, "", ""})
		resp, err := client.Get(ctx, key)
		if err != nil {
			end(outcome{unknown: true})
			return false
		}
		end(outcome{value: valueOf(resp)})
	case 3:
		end := c.history.call(id, op{remove, key, "", ""})
		_, err := client.Delete(ctx, key)
		if err != nil {
			end(outcome{unknown: true})
			return false
		}
		end(outcome{})
	case 4:
		return c.swap(ctx, client, id, key, value)
	}
	return true
}

func (c *clients) swap(ctx context.Context, client *clientv3.Client, id int, key, value string) bool {
	end := c.history.call(id, op{get, key, "", ""})
	now, err := client.Get(ctx, key)
	if err != nil {
		end(outcome{unknown: true})
		return false
	}
	old := valueOf(now)
	end(outcome{value: old})
	same := clientv3.Compare(clientv3.Value(key), "=", old)
	if old == "" {
		same = clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	}
	end = c.history.call(id, op{swap, key, old, value})
	resp, err := client.Txn(ctx).If(same).Then(clientv3.OpPut(key, value)).Commit()
	if err != nil {
		end(outcome{unknown: true})
		return false
	}
	end(outcome{swapped: resp.Succeeded})
	return true
}

func valueOf(resp *clientv3.GetResponse) string {
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}
