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

// HashAt asks the member for the hash of its keys at a revision, and makes sure that it is of
// this revision. If the member compacts a later one meanwhile, etcd answers HashKV with the hash
// of the compaction.
func (c *Conn) HashAt(ctx context.Context, revision int64) (Hash, error) {
	hash, err := c.HashKV(ctx, revision)
	if err != nil {
		return Hash{}, err
	}
	_, err = etcdserverpb.NewKVClient(c.cli.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, Revision: revision, Serializable: true, CountOnly: true})
	if err != nil {
		return Hash{}, fmt.Errorf("read from %s at revision %d, to confirm its hash: %w", c.url, revision, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return hash, nil
}
