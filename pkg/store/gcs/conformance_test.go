//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"encoding/json"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/storetest"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// fake-gcs-server takes any token, and none: who is refused is refused by the server
// of tokens.
func TestConformance(t *testing.T) {
	const pageSize = 100 // fake-gcs-server has pages for those alone who name a size
	server := stores.FakeGCS(t, stores.Options{})
	server.CreateBucket(t, "backups")
	key := stores.GoogleServiceAccount(t, stores.Options{})
	seen := &sessions{}
	opener := func(bucket string, key []byte) storetest.Opener {
		return func(t *testing.T) store.Store {
			opened, err := Open(t.Context(), Config{Bucket: bucket, Endpoint: server.API, CredentialsJSON: key})
			if err != nil {
				t.Fatal(err)
			}
			opened.pageSize = pageSize
			opened.requests = seen.over(opened.requests)
			if opened.service, err = opened.serviceOver(t.Context(), opened.requests); err != nil {
				t.Fatal(err)
			}
			return opened
		}
	}
	storetest.Run(t, opener("backups", key), storetest.Options{
		Denied: map[string]storetest.Opener{
			"another account's key": opener("backups", strange(t, key)),
		},
		Refusal:    store.ErrNoCredentials, // the server of tokens refuses the key, and nobody asks the store
		NoBucket:   opener("nothing", key),
		Secrets:    []string{"PRIVATE KEY", "Invalid JWT"},
		PageSize:   pageSize,
		Unfinished: func(*testing.T) []string { return seen.open() },
		Kill: func(t *testing.T) {
			server.Kill(t)
			seen.forget() // the server has them in memory
		},
		Restart: func(t *testing.T) { server.Restart(t) },
		Freeze:  func(t *testing.T) { server.Freeze(t) },
		Thaw:    func(t *testing.T) { server.Thaw(t) },
		Cannot: map[storetest.Case]string{
			storetest.SweptUploads: "Google itself removes what was sent to a session that was not finished within a week",
		},
	})
}

// strange is a key file with a key that its server of tokens does not know.
func strange(t *testing.T, key []byte) []byte {
	t.Helper()
	known, other := map[string]string{}, map[string]string{}
	if err := json.Unmarshal(key, &known); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stores.GoogleServiceAccount(t, stores.Options{}), &other); err != nil {
		t.Fatal(err)
	}
	other["token_uri"] = known["token_uri"]
	text, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
