//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// releases are those whose metrics name the version and the revision.
func releases(t *testing.T) []members.Release {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(members.Releases(t)), func(r members.Release) bool { return r.Minor() == "3.4" })
}

// scene is a cluster of two that has lost a member, while the other one was down.
type scene struct {
	release  members.Release
	tls      *members.TLS // nil: no user
	survivor *members.Member
	metrics  string
	want     *clientv3.GetResponse
	lease    clientv3.LeaseID
	cluster  uint64
	member   uint64
	held     uint64 // the last entry that the database certainly holds
}

func lose(t *testing.T, r members.Release, authority *members.TLS) scene {
	t.Helper()
	c := r.Start(t, members.Options{Size: 2, TLS: authority})
	client, ctx := c.Client(t), soon(t)
	s := scene{release: r, tls: authority, survivor: c.Members[1], metrics: c.Members[1].Metrics}
	for i := range 300 {
		members.Put(t, client, fmt.Sprintf("key-%d", i%200), strings.Repeat("v", i*37%5000))
	}
	_, err := client.Compact(ctx, 150)
	must(t, err)
	_, err = client.Delete(ctx, "key-7")
	must(t, err)
	lease, err := client.Grant(ctx, 3600)
	must(t, err)
	s.lease = lease.ID
	_, err = client.Put(ctx, "leased", "x", clientv3.WithLease(lease.ID))
	must(t, err)
	if authority != nil {
		_, err = client.UserAdd(ctx, "root", "secret")
		must(t, err)
		_, err = client.UserGrantRole(ctx, "root", "root")
		must(t, err)
		_, err = client.AuthEnable(ctx)
		must(t, err)
	}
	s.want = members.Everything(t, client, 0)
	status, err := client.Status(ctx, s.survivor.URL)
	must(t, err)
	s.cluster, s.member = status.Header.ClusterId, status.Header.MemberId
	// A write that is acknowledged is in both logs. An entry that is applied can be missing in a
	// database for a tenth of a second.
	members.Await(t, "the survivor's database holds all", func(context.Context) error {
		server := Server{DataDir: s.survivor.Dir()}
		file, err := server.openDatabase()
		if err != nil {
			return err
		}
		defer file.Close()
		f, err := readFacts(file, 0)
		if err != nil {
			return err
		}
		s.held = f.consistentIndex
		account, err := server.readAccount("root")
		if err != nil {
			return err
		}
		if f.revision != s.want.Header.Revision || account.enabled != (authority != nil) {
			return fmt.Errorf("it holds revision %d of %d, authentication %t", f.revision, s.want.Header.Revision, account.enabled)
		}
		return nil
	})
	for _, m := range c.Members {
		m.Kill(t)
	}
	s.survivor.Start(t)
	members.Await(t, "the survivor has started", func(ctx context.Context) error {
		_, err := etcd.NotServing(ctx, s.metrics)
		return err
	})
	return s
}

func (s scene) source(t *testing.T) snapshot.Source {
	t.Helper()
	server, _ := newServer(s.survivor.Dir(), s.metrics)
	src := snapshot.Source{}
	if s.tls != nil {
		server.Cert, server.Key, server.CA = s.tls.Files()
		src.TLS = s.tls.ClientConfig(t, "somebody")
		src.User = etcd.Credentials{Username: "root", Password: "secret"}
	}
	src.Endpoints = []etcd.Endpoint{start(t, server)}
	return src
}

func TestASurvivorThatHasRestartedIsBackedUp(t *testing.T) {
	for _, r := range releases(t) {
		for name, authority := range map[string]*members.TLS{"": nil, " with a user": members.NewTLS(t)} {
			t.Run(r.Version+name, func(t *testing.T) {
				t.Parallel()
				s := lose(t, r, authority)
				taken, text := take(t, s.source(t))
				if taken.Linearizable || taken.ClusterID != s.cluster || taken.Version != r.Version || taken.Revision != s.want.Header.Revision {
					t.Errorf("%+v, want revision %d of cluster %x", taken, s.want.Header.Revision, s.cluster)
				}
				now, err := etcd.NotServing(soon(t), s.metrics)
				must(t, err)
				// A crash can lose the commit of the last entries, which are in the database already. The
				// metrics then name an earlier entry.
				if now.MemberID != s.member || now.Revision != taken.Revision || now.Version != r.Version || taken.RaftApplied < max(now.RaftApplied, s.held) {
					t.Errorf("the metrics say %+v, and the snapshot holds the entry %d, want %d", now, taken.RaftApplied, max(now.RaftApplied, s.held))
				}
				path := filepath.Join(t.TempDir(), "snapshot.db")
				must(t, os.WriteFile(path, text, 0o600))
				s.checkRestored(t, path)
			})
		}
	}
}

// checkRestored restores a snapshot with etcd's own tool, and compares all.
func (s scene) checkRestored(t *testing.T, path string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "restored")
	s.release.Run(t, s.release.SnapshotTool(), "snapshot", "restore", path, "--data-dir", data)
	client := s.release.Start(t, members.Options{Data: data, TLS: s.tls}).Client(t)
	got := members.Everything(t, client, s.want.Header.Revision)
	if len(s.want.Kvs) != 200 || len(got.Kvs) != len(s.want.Kvs) {
		t.Fatalf("%d keys were restored, want %d", len(got.Kvs), len(s.want.Kvs))
	}
	for i, kv := range s.want.Kvs {
		if got.Kvs[i].String() != kv.String() {
			t.Errorf("%.80s was restored, want %.80s", got.Kvs[i], kv)
		}
	}
	left, err := client.TimeToLive(soon(t), s.lease, clientv3.WithAttachedKeys())
	must(t, err)
	if left.GrantedTTL != 3600 || len(left.Keys) != 1 || string(left.Keys[0]) != "leased" {
		t.Errorf("the lease is %+v", left)
	}
	status, err := client.AuthStatus(soon(t))
	must(t, err)
	if status.Enabled != (s.tls != nil) {
		t.Errorf("authentication is enabled: %t", status.Enabled)
	}
}

func TestASurvivorWithAUserAsksForIt(t *testing.T) {
	for _, r := range releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			s := lose(t, r, members.NewTLS(t))
			src := s.source(t)
			src.User.Password = "wrong"
			if _, err := snapshot.Open(soon(t), src); !etcd.RefusesUser(err) {
				t.Errorf("with a wrong password: %v", err)
			}
			src.User = etcd.Credentials{}
			if _, err := snapshot.Open(soon(t), src); !etcd.IsDenied(err) {
				t.Errorf("with the certificate of somebody: %v", err)
			}
			src.TLS = s.tls.ClientConfig(t, "root")
			take(t, src)
		})
	}
}

func TestOnceAMemberHasALeaderItServesItself(t *testing.T) {
	for _, r := range releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			c := r.Start(t, members.Options{})
			members.Put(t, c.Client(t), "key", "value")
			server, _ := newServer(c.Members[0].Dir(), c.Members[0].Metrics)
			_, err := connect(t, start(t, server), etcd.Credentials{}).Status(soon(t))
			if err == nil || !strings.Contains(err.Error(), etcd.ErrHasLeader.Error()) {
				t.Error(err)
			}
		})
	}
}
