// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Contents is what etcd holds at a revision.
type Contents struct {
	Revision, Keys int64
}

// Contents counts all keys by a linearizable read.
func (c *Conn) Contents(ctx context.Context) (Contents, error) {
	resp, err := c.cli.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		return Contents{}, fmt.Errorf("count the keys through %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return Contents{Revision: resp.Header.GetRevision(), Keys: resp.Count}, nil
}

// Value returns the value of a key by a linearizable read, and whether the key exists.
func (c *Conn) Value(ctx context.Context, key string) (value string, exists bool, err error) {
	resp, err := c.cli.Get(ctx, key)
	if err != nil {
		return "", false, fmt.Errorf("read a key through %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	if len(resp.Kvs) == 0 {
		return "", false, nil
	}
	return string(resp.Kvs[0].Value), true, nil
}

// keysPage is how many keys one request reads.
const keysPage = 5000

// Keys sums up the keys that a member holds at a revision: their names, revisions, versions and
// leases, without their values.
type Keys struct {
	Count int64
	Sum   [sha256.Size]byte
}

// Keys reads all keys of the member without asking others. A learner answers it too.
func (c *Conn) Keys(ctx context.Context, revision int64) (Keys, error) {
	hash, keys, from := sha256.New(), Keys{}, "\x00"
	var numbers [5 * 8]byte
	for {
		resp, err := c.cli.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithKeysOnly(), clientv3.WithSerializable(),
			clientv3.WithRev(revision), clientv3.WithLimit(keysPage))
		if err != nil {
			return Keys{}, fmt.Errorf("read all keys of %s at revision %d: %w", c.url, revision, clientv3.ContextError(ctx, c.explain(ctx, err)))
		}
		for _, kv := range resp.Kvs {
			for i, n := range []int64{int64(len(kv.Key)), kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease} {
				binary.BigEndian.PutUint64(numbers[i*8:], uint64(n)) // the bits
			}
			hash.Write(numbers[:])
			hash.Write(kv.Key)
			keys.Count++
		}
		if !resp.More || len(resp.Kvs) == 0 {
			break
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
	hash.Sum(keys.Sum[:0])
	return keys, nil
}
