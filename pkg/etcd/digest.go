// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// pageLimit bounds the time of one page of a digest. The whole takes as long as the member sends.
const pageLimit = 30 * time.Second

// Digest sums up what a member holds at a revision: all keys with their values, revisions, versions
// and leases. Members with the same data have the same digest, whatever they have compacted.
type Digest struct {
	Keys int64
	Sum  [sha256.Size]byte
}

// Digest reads all keys and values of the member, without asking others. A learner answers it too.
//
// HashKV would be faster. But from its begin to its end, the member applies no writes, and all its
// clients wait: 1.1 s for 1 GiB of values of 1 KiB, from memory. Here, a write waits for one page at
// most.
func (c *Conn) Digest(ctx context.Context, revision int64) (Digest, error) {
	hash, digest := sha256.New(), Digest{}
	var numbers [6 * 8]byte
	for at := newCursor(); !at.done; {
		resp, err := c.page(ctx, at, revision)
		if err != nil {
			return Digest{}, fmt.Errorf("read all keys of %s at revision %d: %w", c.url, revision, err)
		}
		for _, kv := range resp.Kvs {
			for i, n := range []int64{int64(len(kv.Key)), int64(len(kv.Value)), kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease} {
				binary.BigEndian.PutUint64(numbers[i*8:], uint64(n)) // the bits
			}
			hash.Write(numbers[:])
			hash.Write(kv.Key)
			hash.Write(kv.Value)
			digest.Keys++
		}
		at.advance(resp.Kvs, resp.Count)
	}
	hash.Sum(digest.Sum[:0])
	return digest, nil
}

// page reads the keys at a cursor.
func (c *Conn) page(ctx context.Context, at *cursor, revision int64) (*clientv3.GetResponse, error) {
	limited, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	resp, err := c.cli.Get(limited, at.from, clientv3.WithRange(at.end), clientv3.WithSerializable(), clientv3.WithRev(revision), clientv3.WithLimit(at.limit))
	if err != nil {
		return nil, clientv3.ContextError(limited, c.explain(limited, err))
	}
	return resp, nil
}
