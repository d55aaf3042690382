//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// All changes of a revision come at once, also more than etcd sends in one message, and as a
// user where etcd asks for one.
func TestChangesComeByRevision(t *testing.T) {
	for _, release := range members.Releases(t) {
		t.Run(release.Minor(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cluster := release.Start(t, members.Options{})
			admin := cluster.Client(t)
			enableAuth(t, admin, "password")
			conn := connect(t, cluster, etcd.Credentials{Username: "root", Password: "password"})[0]
			if _, err := connect(t, cluster, etcd.Credentials{})[0].Changes(ctx, 1); err == nil {
				t.Error("without a user, a stream begins")
			}
			stream, err := conn.Changes(ctx, 2)
			must(t, err)

			user, err := clientv3.New(clientv3.Config{Endpoints: admin.Endpoints(), Username: "root", Password: "password"})
			must(t, err)
			defer user.Close()
			lease, err := user.Grant(ctx, 500)
			must(t, err)
			var ops []clientv3.Op
			for i := range 60 {
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("key-%02d", i), strings.Repeat("x", 20_000), clientv3.WithLease(lease.ID)))
			}
			must(t, second(user.Txn(ctx).Then(ops...).Commit()))
			for range 5 {
				must(t, second(user.Put(ctx, "single", "value")))
			}
			must(t, second(user.Delete(ctx, "key-", clientv3.WithPrefix())))
			at, err := conn.Position(ctx)
			must(t, err)

			count := map[int64]int{}
			for last := int64(0); last < at.Revision; {
				changes, err := stream.Next()
				must(t, err)
				if changes[0].Revision <= last {
					t.Fatalf("revision %d comes in pieces", last)
				}
				for _, c := range changes {
					if c.Revision < last {
						t.Fatalf("revision %d comes after %d", c.Revision, last)
					}
					last = c.Revision
					count[last]++
					if c.Tombstone != (last == at.Revision) || (c.Lease == int64(lease.ID)) != (last == 2) {
						t.Errorf("revision %d: tombstone %v, lease %x", last, c.Tombstone, c.Lease)
					}
				}
			}
			if at.Revision != 8 || count[2] != 60 || count[3] != 1 || count[8] != 60 {
				t.Errorf("up to revision %d: %v", at.Revision, count)
			}
			if ttl, err := conn.LeaseTTL(ctx, int64(lease.ID)); err != nil || ttl != 500 {
				t.Errorf("the lease has %d seconds, %v", ttl, err)
			}
			if ttl, err := conn.LeaseTTL(ctx, 12345); err != nil || ttl != 0 {
				t.Errorf("no lease has %d seconds, %v", ttl, err)
			}

			must(t, second(user.Compact(ctx, 7, clientv3.WithCompactPhysical())))
			old, err := conn.Changes(ctx, 3)
			if err == nil {
				_, err = old.Next()
			}
			var compacted etcd.CompactedError
			if !errors.As(err, &compacted) || compacted.Revision != 7 {
				t.Errorf("of a compacted revision: %v", err)
			}
		})
	}
}
