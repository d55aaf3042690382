// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// callTime bounds requests to a cluster, on a machine that is busy with other tests.
const callTime = time.Minute

// SnapshotStatus is the report of etcd's own tool about a snapshot.
type SnapshotStatus struct {
	Revision  int64 `json:"revision"`
	TotalSize int64 `json:"totalSize"`
}

// SnapshotStatus runs etcd's own tool on a snapshot.
func (r Release) SnapshotStatus(t testing.TB, path string) SnapshotStatus {
	t.Helper()
	var status SnapshotStatus
	if err := json.Unmarshal([]byte(r.Run(t, r.SnapshotTool(), "snapshot", "status", path, "-w", "json")), &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// Restore starts a cluster of one from a snapshot.
func (r Release) Restore(t testing.TB, path string) *clientv3.Client {
	t.Helper()
	data := filepath.Join(t.TempDir(), "restored")
	r.Run(t, r.SnapshotTool(), "snapshot", "restore", path, "--data-dir", data)
	return r.Start(t, Options{Data: data}).Client(t)
}

// Same compares all data of two clusters at a revision, by etcd's own hash and key by key.
// Neither must have been compacted since.
func Same(t testing.TB, got, want *clientv3.Client, revision int64) {
	t.Helper()
	if got, want := hashKV(t, got, revision), hashKV(t, want, revision); got != want {
		t.Errorf("the hash of the keys at revision %d is %d, want %d", revision, got, want)
	}
	all, expected := Everything(t, got, revision), Everything(t, want, revision)
	if len(expected.Kvs) == 0 || len(all.Kvs) != len(expected.Kvs) {
		t.Fatalf("there are %d keys at revision %d, want %d", len(all.Kvs), revision, len(expected.Kvs))
	}
	for i := range expected.Kvs {
		if got, want := all.Kvs[i].String(), expected.Kvs[i].String(); got != want {
			t.Errorf("there is %.80s, want %.80s", got, want)
		}
	}
}

// Everything returns all keys at a revision; 0: now.
func Everything(t testing.TB, client *clientv3.Client, revision int64) (all *clientv3.GetResponse) {
	t.Helper()
	Await(t, "read all keys", func(ctx context.Context) (err error) {
		all, err = client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(revision))
		return err
	})
	return all
}

// Put writes a key.
func Put(t testing.TB, client *clientv3.Client, key, value string) {
	t.Helper()
	Await(t, "write "+key, func(ctx context.Context) error {
		_, err := client.Put(ctx, key, value)
		return err
	})
}

// hashKV returns etcd's own hash of all keys up to a revision.
func hashKV(t testing.TB, client *clientv3.Client, revision int64) (hash uint32) {
	t.Helper()
	Await(t, "hash all keys", func(ctx context.Context) error {
		resp, err := client.HashKV(ctx, client.Endpoints()[0], revision)
		if err == nil {
			hash = resp.Hash
		}
		return err
	})
	return hash
}
