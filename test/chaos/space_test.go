//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	databaseQuota = 32 << 20
	// fillPrefix is below the prefix that is watched: what the watch was told of it says
	// up to which revision the history may be compacted.
	fillPrefix = prefix + "fill/"
	// roomWithin is how long it may take until a cluster has room and takes writes.
	roomWithin = 5 * time.Minute
)

var spaceFaults = []fault{{name: "database full", calm: true, strike: func(s *storm, c *target, _ *corev1.Pod) {
	harness.Wait(s.t, "the database of "+c.Name+" is full", roomWithin, func(ctx context.Context) error { return s.with(ctx, c, fill) })
	s.hold(5, 20)
	harness.Wait(s.t, "room in the database of "+c.Name, roomWithin, func(ctx context.Context) error {
		return s.with(ctx, c, func(ctx context.Context, client *clientv3.Client) error { return c.makeRoom(ctx, client) })
	})
}}}

// fill writes until the quota stops it.
func fill(ctx context.Context, client *clientv3.Client) error {
	value := strings.Repeat("x", 1<<20)
	for i := range 2 * databaseQuota / len(value) {
		_, err := client.Put(ctx, fmt.Sprintf("%s%d", fillPrefix, i), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("no quota has stopped the writes")
}

// makeRoom does what doc/alerts.md says: delete, compact, defragment, disarm.
func (c *target) makeRoom(ctx context.Context, client *clientv3.Client) error {
	if _, err := client.Delete(ctx, fillPrefix, clientv3.WithPrefix()); err != nil {
		return err
	}
	left, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	if told := c.clients.watch.filled(); told > 0 {
		return fmt.Errorf("the watch was not told yet that %d keys are gone", told)
	}
	if err := compact(ctx, client, min(left.Header.Revision, c.clients.watch.upTo())); err != nil {
		return err
	}
	if err := c.MakeRoom(ctx); err != nil {
		return err
	}
	_, err = client.Put(ctx, "room", "yes")
	return err
}

// compact forgets the history up to a revision, which may be forgotten already.
func compact(ctx context.Context, client *clientv3.Client, revision int64) error {
	if _, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	return nil
}

// compactAll forgets what no watch needs any more. A cluster that does not answer is
// compacted another time.
func (s *storm) compactAll() {
	for _, c := range s.targets {
		err := s.with(s.t.Context(), c, func(ctx context.Context, client *clientv3.Client) error {
			return compact(ctx, client, max(1, c.clients.watch.upTo()))
		})
		if err != nil {
			s.t.Logf("compact %s: %v", c.Name, err)
		}
	}
}

// with does something with a client, within a time that a cluster that answers needs.
func (s *storm) with(ctx context.Context, c *target, do func(context.Context, *clientv3.Client) error) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return do(ctx, client)
}
