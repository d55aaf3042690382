// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Contents is what etcd holds.
type Contents struct {
	// Revision is the newest one, and Keys counts those of the revision that was asked for.
	Revision, Keys int64
}

// Contents counts all keys at a revision by a linearizable read; 0: at the newest one. The error wraps
// rpctypes.ErrFutureRev or rpctypes.ErrCompacted if etcd does not have that revision.
func (c *Conn) Contents(ctx context.Context, at int64) (Contents, error) {
	resp, err := c.cli.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly(), clientv3.WithRev(at))
	if err != nil {
		return Contents{}, fmt.Errorf("count the keys through %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return Contents{Revision: resp.Header.GetRevision(), Keys: resp.Count}, nil
}

// Value returns the value of a key at a revision by a linearizable read, and whether the key exists. 0: at
// the newest revision.
func (c *Conn) Value(ctx context.Context, key string, at int64) (value string, exists bool, err error) {
	resp, err := c.cli.Get(ctx, key, clientv3.WithRev(at))
	if err != nil {
		return "", false, fmt.Errorf("read a key through %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	if len(resp.Kvs) == 0 {
		return "", false, nil
	}
	return string(resp.Kvs[0].Value), true, nil
}
