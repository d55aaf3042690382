//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gcs

import (
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/storetest"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// fake-gcs-server takes any credentials: that wrong ones are told is a test of its
// own.
func TestConformance(t *testing.T) {
	server := stores.FakeGCS(t, stores.Options{})
	server.CreateBucket(t, "backups")
	opener := func(bucket string) storetest.Opener {
		return func(t *testing.T) store.Store {
			opened, err := Open(t.Context(), Config{Bucket: bucket, Endpoint: server.API})
			if err != nil {
				t.Fatal(err)
			}
			return opened
		}
	}
	storetest.Run(t, opener("backups"), storetest.Options{
		NoBucket: opener("nothing"),
		Kill:     func(t *testing.T) { server.Kill(t) },
		Restart:  func(t *testing.T) { server.Restart(t) },
		Freeze:   func(t *testing.T) { server.Freeze(t) },
		Thaw:     func(t *testing.T) { server.Thaw(t) },
	})
}
