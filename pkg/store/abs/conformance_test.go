//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package abs

import (
	"encoding/base64"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/storetest"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

func TestConformance(t *testing.T) {
	const pageSize = 100 // Azure's own is 5,000
	server := stores.Azurite(t, stores.Options{})
	server.CreateContainer(t, "backups")
	good := Config{Container: "backups", Account: server.Account, Key: server.Key, Endpoint: server.Service}
	opener := func(edit func(*Config)) storetest.Opener {
		return func(t *testing.T) store.Store {
			config := good
			edit(&config)
			opened, err := Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			opened.pageSize = pageSize
			return opened
		}
	}
	wrongKey := base64.StdEncoding.EncodeToString([]byte("not the key of the account"))
	storetest.Run(t, opener(func(*Config) {}), storetest.Options{
		Denied: map[string]storetest.Opener{
			"wrong key": opener(func(c *Config) { c.Key = wrongKey }),
		},
		NoBucket:   opener(func(c *Config) { c.Container = "nothing" }),
		Secrets:    []string{server.Key, wrongKey},
		PageSize:   pageSize,
		Unfinished: func(t *testing.T) []string { return server.Uncommitted(t, "backups") },
		Lingers:    "Azure has no request that removes blocks; with those that are committed all others of the blob go",
		Kill: func(t *testing.T) {
			server.AwaitSaved(t, "dies/old") // which the suite has put, and expects afterwards
			server.Kill(t)
		},
		Restart: func(t *testing.T) { server.Restart(t) },
		Freeze:  func(t *testing.T) { server.Freeze(t) },
		Thaw:    func(t *testing.T) { server.Thaw(t) },
		Cannot: map[storetest.Case]string{
			storetest.SweptUploads: "Azure itself removes blocks that were not committed within a week",
		},
	})
}
