//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/members"
)

func TestContentsAndValues(t *testing.T) {
	for _, release := range members.Releases(t) {
		t.Run(release.Minor(), func(t *testing.T) {
			c := release.Start(t, members.Options{})
			conn := connect(t, c, etcd.Credentials{})[0]
			got, err := conn.Contents(t.Context(), 0)
			must(t, err)
			if got != (etcd.Contents{Revision: 1}) {
				t.Errorf("an empty etcd has %+v", got)
			}
			client := c.Client(t)
			members.Put(t, client, "\x00", "first")
			members.Put(t, client, "kept", "yes")
			members.Put(t, client, "\xff", "")
			must(t, second(client.Delete(t.Context(), "\x00")))
			got, err = conn.Contents(t.Context(), 0)
			must(t, err)
			if got != (etcd.Contents{Revision: 5, Keys: 2}) {
				t.Errorf("etcd has %+v", got)
			}
			for key, want := range map[string]struct {
				value  string
				exists bool
			}{"kept": {"yes", true}, "\xff": {"", true}, "\x00": {"", false}} {
				if value, exists, err := conn.Value(t.Context(), key, 0); err != nil || value != want.value || exists != want.exists {
					t.Errorf("%q has %q, %t, %v", key, value, exists, err)
				}
			}
			must(t, second(client.Compact(t.Context(), 4)))
			if got, err := conn.Contents(t.Context(), 4); err != nil || got != (etcd.Contents{Revision: 5, Keys: 3}) {
				t.Errorf("at the compaction, etcd has %+v, %v", got, err)
			}
			if value, exists, err := conn.Value(t.Context(), "\x00", 4); err != nil || value != "first" || !exists {
				t.Errorf("at the compaction, the key has %q, %t, %v", value, exists, err)
			}
			for at, want := range map[int64]error{3: rpctypes.ErrCompacted, 6: rpctypes.ErrFutureRev} {
				if _, err := conn.Contents(t.Context(), at); !errors.Is(err, want) {
					t.Errorf("at revision %d: %v", at, err)
				}
			}
		})
	}
}
