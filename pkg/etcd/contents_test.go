//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/members"
)

func TestContentsAndValues(t *testing.T) {
	for _, release := range members.Releases(t) {
		t.Run(release.Minor(), func(t *testing.T) {
			c := release.Start(t, members.Options{})
			conn := connect(t, c, etcd.Credentials{})[0]
			got, err := conn.Contents(t.Context())
			must(t, err)
			if got != (etcd.Contents{Revision: 1}) {
				t.Errorf("an empty etcd has %+v", got)
			}
			client := c.Client(t)
			members.Put(t, client, "\x00", "first")
			members.Put(t, client, "kept", "yes")
			members.Put(t, client, "\xff", "")
			must(t, second(client.Delete(t.Context(), "\x00")))
			got, err = conn.Contents(t.Context())
			must(t, err)
			if got != (etcd.Contents{Revision: 5, Keys: 2}) {
				t.Errorf("etcd has %+v", got)
			}
			for key, want := range map[string]struct {
				value  string
				exists bool
			}{"kept": {"yes", true}, "\xff": {"", true}, "\x00": {"", false}} {
				if value, exists, err := conn.Value(t.Context(), key); err != nil || value != want.value || exists != want.exists {
					t.Errorf("%q has %q, %t, %v", key, value, exists, err)
				}
			}
		})
	}
}
