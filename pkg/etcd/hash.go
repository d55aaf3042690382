// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Hash sums up the keys of one member at a revision. Members with the same data have the same
// hash, if their compaction is the same.
type Hash struct {
	Sum       uint32
	Compacted int64
}

// HashKV asks the member for the hash of its keys at a revision. The member reads its whole
// database for it.
func (c *Conn) HashKV(ctx context.Context, revision int64) (Hash, error) {
	resp, err := etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).HashKV(ctx, &etcdserverpb.HashKVRequest{Revision: revision})
	if err != nil {
		return Hash{}, fmt.Errorf("hash of %s at revision %d: %w", c.url, revision, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return Hash{Sum: resp.Hash, Compacted: resp.CompactRevision}, nil
}

// Value reads the value of a key, and nil if the key does not exist. A quorum confirms it.
func (c *Conn) Value(ctx context.Context, key string) ([]byte, error) {
	resp, err := etcdserverpb.NewKVClient(c.cli.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(key)})
	if err != nil {
		return nil, fmt.Errorf("read the key %s from %s: %w", key, c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	if len(resp.Kvs) == 0 {
		return nil, nil
	}
	return resp.Kvs[0].Value, nil
}
