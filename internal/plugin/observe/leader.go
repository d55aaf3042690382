// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
)

// MoveLeader hands leadership from one member to another.
func (o *Observer) MoveLeader(ctx context.Context, c *Cluster, from, to string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for _, m := range c.Members {
		if m.Name != to {
			continue
		}
		conn, err := o.client.Conn(Endpoint(c.Object, from))
		if err != nil {
			return err
		}
		return conn.MoveLeader(ctx, m.ID)
	}
	return fmt.Errorf("EtcdCluster %s has no member %s", c.Object.Name, to)
}
