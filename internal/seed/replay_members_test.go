//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/internal/survivor"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// backUpSurvivor returns a member that has entries in its log that its database lacks, and the backup that a
// server of data gives of it. The member runs again afterwards.
func backUpSurvivor(t *testing.T, release members.Release) (c *members.Cluster, backup string) {
	t.Helper()
	c = release.Start(t, members.Options{})
	m := c.Members[0]
	for i := range 20 {
		members.Put(t, c.Client(t), fmt.Sprintf("early-%d", i), "x")
	}
	members.Commit(t, c.Client(t))
	m.Kill(t)
	early, err := os.ReadFile(m.Database())
	if err != nil {
		t.Fatal(err)
	}
	m.Start(t)
	c.WaitServing(t)
	writeLate(t, c.Client(t))
	m.Kill(t)
	write(t, m.Database(), string(early))
	backup = serveOnce(t, m.Dir(), release)
	m.Start(t) // etcd applies the rest of its log
	c.WaitServing(t)
	return c, backup
}

// writeLate makes requests of many kinds.
func writeLate(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	late, err := client.Put(ctx, "late", "x")
	must(t, err)
	txn, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("late"), "=", late.Header.Revision)).
		Then(clientv3.OpPut("late", "y"), clientv3.OpDelete("early-7")).Else(clientv3.OpPut("late", "z")).Commit()
	must(t, err)
	if !txn.Succeeded {
		t.Fatal("the transaction has failed")
	}
	lease, err := client.Grant(ctx, 3600)
	must(t, err)
	_, err = client.Put(ctx, "leased", "x", clientv3.WithLease(lease.ID))
	must(t, err)
	gone, err := client.Grant(ctx, 3600)
	must(t, err)
	_, err = client.Put(ctx, "gone", "x", clientv3.WithLease(gone.ID))
	must(t, err)
	_, err = client.Revoke(ctx, gone.ID)
	must(t, err)
	_, err = client.UserAdd(ctx, "somebody", "password")
	must(t, err)
	_, err = client.Delete(ctx, "early-1", clientv3.WithPrefix())
	must(t, err)
	_, err = client.Compact(ctx, late.Header.Revision)
	must(t, err)
	members.Put(t, client, "last", "x")
}

// serveOnce takes the backup of a data directory.
func serveOnce(t *testing.T, dataDir string, release members.Release) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	must(t, err)
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	served := make(chan error, 1)
	server := survivor.Server{DataDir: dataDir, Metrics: "127.0.0.1:1", Version: release.Version, Log: logrus.NewEntry(logger)}
	go func() { served <- server.Serve(ctx, listener) }()
	s, err := snapshot.Open(ctx, snapshot.Source{Endpoints: []etcd.Endpoint{{URL: "http://" + listener.Addr().String()}}})
	must(t, err)
	defer s.Close()
	name := filepath.Join(t.TempDir(), "backup")
	text, err := io.ReadAll(s)
	must(t, err)
	write(t, name, string(text))
	cancel()
	must(t, <-served)
	return name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A member may have confirmed entries to the leader before it knew that they are committed. Their writes are
// acknowledged, and are in the log of the member alone.
func TestEntriesThatASurvivorHasNotAppliedAreRestored(t *testing.T) {
	t.Parallel()
	for _, release := range members.Releases(t) {
		t.Run(release.Minor(), func(t *testing.T) {
			t.Parallel()
			c, backup := backUpSurvivor(t, release)
			r := restoreOf(t, backup, release)
			must(t, r.Run(t.Context()))
			restored := release.Start(t, members.Options{Data: r.DataDir}).Client(t)
			want := c.Client(t)
			last := members.Everything(t, want, 0)
			members.Same(t, restored, want, last.Header.Revision)
			compareOthers(t, restored, want)
			if release.Minor() == "3.4" {
				return // without a way to raise the revision
			}
			raised := restoreOf(t, backup, release)
			raised.BumpRevision = 1_000_000_000
			must(t, raised.Run(t.Context()))
			client := release.Start(t, members.Options{Data: raised.DataDir}).Client(t)
			compareOthers(t, client, want)
			got := members.Everything(t, client, 0)
			if got.Header.Revision != last.Header.Revision+raised.BumpRevision {
				t.Errorf("the revision is %d, want %d and %d", got.Header.Revision, last.Header.Revision, raised.BumpRevision)
			}
			if len(got.Kvs) != len(last.Kvs) || len(got.Kvs) < 5 {
				t.Fatalf("there are %d keys, want %d", len(got.Kvs), len(last.Kvs))
			}
			for i := range got.Kvs {
				if got.Kvs[i].String() != last.Kvs[i].String() {
					t.Errorf("there is %s, want %s", got.Kvs[i], last.Kvs[i])
				}
			}
		})
	}
}

// compareOthers compares what raises no revision.
func compareOthers(t *testing.T, got, want *clientv3.Client) {
	t.Helper()
	state := func(client *clientv3.Client) (ids []int64, users []string) {
		leases, err := client.Leases(t.Context())
		must(t, err)
		for _, l := range leases.Leases {
			ids = append(ids, int64(l.ID))
		}
		slices.Sort(ids)
		list, err := client.UserList(t.Context())
		must(t, err)
		return ids, list.Users
	}
	gotLeases, gotUsers := state(got)
	wantLeases, wantUsers := state(want)
	if !slices.Equal(gotLeases, wantLeases) || len(wantLeases) != 1 || !slices.Equal(gotUsers, wantUsers) || len(wantUsers) != 1 {
		t.Errorf("leases %v, want %v; users %v, want %v", gotLeases, wantLeases, gotUsers, wantUsers)
	}
}

// An entry at which etcd ends, or never returns, must not keep the cluster from coming back. The person gives up
// what the survivor has not applied.
func TestARestoreGoesOnWithoutEntriesThatEtcdCannotApply(t *testing.T) {
	t.Parallel()
	releases := members.Releases(t)
	release := releases[len(releases)-1]
	c, backup := backUpSurvivor(t, release)
	applied := release.SnapshotStatus(t, backup).Revision
	for name, etcd := range map[string]struct {
		program, want string
		stall         time.Duration
	}{
		"it ends":   {"#!/bin/sh\necho 'panic: unexpected error during txn with writes' >&2\nexit 2\n", "panic: unexpected error during txn with writes", time.Minute},
		"it blocks": {"#!/bin/sh\nexec sleep 600\n", "etcd has applied no raft entry for 200ms", 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := restoreOf(t, backup, release)
			r.stall = etcd.stall
			tools := t.TempDir()
			must(t, os.Symlink(r.Tool, filepath.Join(tools, "etcdutl")))
			must(t, os.WriteFile(filepath.Join(tools, "etcd"), []byte(etcd.program), 0o700)) //nolint:gosec // a program
			r.Tool = filepath.Join(tools, "etcdutl")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for range 2 { // the kubelet starts the container again
				err := r.Run(ctx)
				if err == nil || !strings.Contains(err.Error(), etcd.want) || !strings.Contains(err.Error(), "set spec.revision of the EtcdRestore to status.backup.etcdRevision") {
					t.Fatalf("the error is %v", err)
				}
			}
			r.Revision, r.BumpRevision = applied, 1_000_000_000
			must(t, r.Run(ctx))
			got := members.Everything(t, release.Start(t, members.Options{Data: r.DataDir}).Client(t), 0)
			want := members.Everything(t, c.Client(t), 0)
			if len(got.Kvs) != 20 || got.Header.Revision != applied+r.BumpRevision || want.Header.Revision <= applied {
				t.Errorf("%d keys at revision %d are restored; the survivor had applied 20 at %d, and has %d", len(got.Kvs), got.Header.Revision, applied, want.Header.Revision)
			}
		})
	}
}
