// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
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
