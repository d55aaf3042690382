//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-operator/etcd-operator/internal/seed"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// breaksAt is the offset at which the store's first connection breaks.
const breaksAt = 5 << 20

// bringBack takes a backup through all steps of a restore: it is selected and read, then
// served, and fetched like by the first member. The store's connection breaks once. bringBack
// returns the file for etcd's tool.
func (o *operator) bringBack(ctx context.Context, t *testing.T, key string) (selection.Verified, string) {
	t.Helper()
	place, err := location.Open(ctx, location.KubeSecrets{Kube: o.Kube, Operator: "backup"}, "ns", o.at.storageType, o.at.source(key), o.at.volumeDir)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	found, passed, err := selection.Find(ctx, place, &api.RestoreSpec{}, nil)
	if err != nil || len(passed) > 0 {
		t.Fatalf("select the backup: %v, passed over %q", err, passed)
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := backupserver.New(backupserver.Config{})
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Run(serving, listener) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	var mu sync.Mutex
	var offsets []int64
	failures := make(chan error, 10)
	defer server.Offer("example", "secret", backupserver.Backup{
		Size: found.Size, SHA256: found.SHA256, Failed: func(err error) { failures <- err },
		Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
			body, err := place.Get(ctx, found.Key, offset)
			mu.Lock()
			defer mu.Unlock()
			if offsets = append(offsets, offset); len(offsets) == 1 && err == nil {
				return broken{io.LimitReader(body, breaksAt), body}, nil
			}
			return body, err
		},
	})()

	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = seed.Fetch{
		URL: "http://" + listener.Addr().String() + backupserver.Path + "example", TokenFile: token,
		Size: found.Size, SHA256: found.SHA256, Dir: dir, DataDir: filepath.Join(dir, "data"),
		Transport: seed.Transport(), Out: io.Discard, Err: io.Discard,
	}.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(offsets) != 2 || offsets[0] != 0 || offsets[1] != breaksAt || len(failures) != 1 {
		t.Errorf("fetched from %v, with %d failures; want it to continue at %d", offsets, len(failures), breaksAt)
	}
	return found, filepath.Join(dir, "snapshot.db")
}

// broken breaks off where its reader ends.
type broken struct {
	io.Reader
	io.Closer
}

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// A restore rejects files that are no backups, and parts of one. It finds the good backup
// before them.
func TestTheNewestGoodBackupIsSelected(t *testing.T) {
	for _, r := range members.Releases(t) {
		data := filepath.Join(t.TempDir(), "data")
		source := r.Start(t, members.Options{Data: data})
		fill(t, source.Client(t), 2)
		o := newOperator(t, s3(t))
		if _, err := o.make(t.Context(), "etcd.backup", []string{source.Members[0].URL}); err != nil {
			t.Fatal(err)
		}
		source.Members[0].Kill(t)
		database, err := os.ReadFile(filepath.Join(data, "member", "snap", "db"))
		if err != nil {
			t.Fatal(err)
		}
		place, err := location.Open(t.Context(), location.KubeSecrets{Kube: o.Kube, Operator: "backup"}, "ns", o.at.storageType, o.at.source("etcd.backup"), "")
		if err != nil {
			t.Fatal(err)
		}
		defer place.Close()
		body, err := place.Get(t.Context(), "etcd.backup", 0)
		if err != nil {
			t.Fatal(err)
		}
		good, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil {
			t.Fatal(err)
		}
		flipped := slices.Clone(good)
		flipped[len(good)/2] ^= 1
		for key, content := range map[string][]byte{
			"etcd.backup_v9_2026-06-05-00:00:00":  database,
			"etcd.backup_v9_2026-06-04-00:00:00":  good[:len(good)/2],
			"etcd.backup_v9_2026-06-03-00:00:00":  flipped,
			"etcd.backup_v10_2026-06-02-00:00:00": good,
			"etcd.backup_v9_2026-06-01-00:00:00":  good,
		} {
			if _, err := place.Put(t.Context(), key, store.Upload{Body: bytes.NewReader(content), Size: int64(len(content))}); err != nil {
				t.Fatal(err)
			}
		}
		found, passed, err := selection.Find(t.Context(), place, &api.RestoreSpec{Pick: api.RestorePickNewest}, nil)
		if err != nil || found.Path != "bucket/etcd.backup_v10_2026-06-02-00:00:00" || found.EtcdRevision != 10 {
			t.Errorf("%s: found %+v, %v", r, found, err)
		}
		for i, want := range []string{"a member's data directory", "it was cut off", "does not fit the sha256"} {
			if len(passed) != 3 || !strings.Contains(passed[i], want) {
				t.Errorf("%s: passed over %q, want %s reported", r, passed, want)
			}
		}
	}
}
