//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	leasePrefix = "leased/"
	// leaseTTL is how long a lease lasts without a renewal, and leasePace is the time between
	// two renewals.
	leaseTTL  = 30 * time.Second
	leasePace = time.Second
	// renewals is how often a lease is renewed before it is revoked.
	renewals = 60
)

// leases is a client that keeps a key alive by its lease for a while, revokes the lease, and
// starts over. It reads the key after each step.
type leases struct {
	prefix string // of its keys
	start  time.Time

	mu      sync.Mutex
	granted int
	revoked []leased
	broken  error // violations of a lease
}

func newLeases(cluster string) *leases {
	return &leases{prefix: leasePrefix + cluster + "/", start: time.Now()}
}

func (l *leases) run(ctx context.Context, dial func() (*clientv3.Client, error)) {
	for n := 0; ctx.Err() == nil; n++ {
		if client, err := dial(); err == nil {
			l.life(ctx, client, fmt.Sprintf("%s%d", l.prefix, n), dial)
		}
		l.pause(ctx)
	}
}

func (l *leases) pause(ctx context.Context) {
	select {
	case <-time.After(leasePace):
	case <-ctx.Done():
	}
}

// life follows one lease. It ends early if the lease's fate is unknown.
func (l *leases) life(ctx context.Context, client *clientv3.Client, key string, dial func() (*clientv3.Client, error)) {
	defer func() { _ = client.Close() }()
	lease := leased{key: key, ttl: leaseTTL}
	var id clientv3.LeaseID
	if !l.ask(ctx, func(ctx context.Context) error {
		lease.alive = time.Since(l.start)
		resp, err := client.Grant(ctx, int64(leaseTTL.Seconds()))
		if err != nil {
			return err
		}
		id = resp.ID
		_, err = client.Put(ctx, key, "kept", clientv3.WithLease(id))
		return err
	}) {
		return
	}
	l.mu.Lock()
	l.granted++
	l.mu.Unlock()
	for range renewals {
		l.pause(ctx)
		sent := time.Since(l.start)
		if l.ask(ctx, func(ctx context.Context) error { _, err := client.KeepAliveOnce(ctx, id); return err }) {
			lease.alive = sent
		} else if ctx.Err() == nil {
			// A connection through a Service stays with its first member.
			_ = client.Close()
			next, err := dial()
			if err != nil {
				return
			}
			client = next
		}
		if found, known := l.look(ctx, client, lease); known && !found {
			return // the time has come, or the violation is noted
		}
		if ctx.Err() != nil {
			break
		}
	}
	if l.ask(ctx, func(ctx context.Context) error { _, err := client.Revoke(ctx, id); return err }) {
		lease.revoked = true
		l.look(ctx, client, lease)
		l.mu.Lock()
		l.revoked = append(l.revoked, lease)
		l.mu.Unlock()
	}
}

// ask reports whether there was an answer.
func (l *leases) ask(ctx context.Context, do func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return do(ctx) == nil
}

// look reads the key of a lease, and notes a violation.
func (l *leases) look(ctx context.Context, client *clientv3.Client, lease leased) (found, known bool) {
	known = l.ask(ctx, func(ctx context.Context) error {
		resp, err := client.Get(ctx, lease.key)
		if err == nil {
			found = len(resp.Kvs) > 0
		}
		return err
	})
	if known {
		l.note(lease.check(found, time.Since(l.start)))
	}
	return found, known
}

func (l *leases) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
	}
}

// count returns the number of leases.
func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granted
}

// check reads the keys of all leases again after the last fault. The keys of revoked leases
// must be absent.
func (l *leases) check(ctx context.Context, client *clientv3.Client) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	resp, err := client.Get(ctx, leasePrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("read all keys with leases: %w", err)
	}
	there := map[string]bool{}
	for _, kv := range resp.Kvs {
		there[string(kv.Key)] = true
	}
	for _, lease := range l.revoked {
		if err := lease.check(there[lease.key], time.Since(l.start)); err != nil {
			return err
		}
	}
	return nil
}
