//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// source is a cluster and its backup.
type source struct {
	release  members.Release
	client   *clientv3.Client
	revision int64
	backup   string
	lease    clientv3.LeaseID
}

func backUp(t *testing.T, release members.Release, keys int) source {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := source{release: release, client: release.Start(t, members.Options{}).Client(t), backup: filepath.Join(t.TempDir(), "backup")}
	put := func(key, value string, options ...clientv3.OpOption) {
		resp, err := s.client.Put(ctx, key, value, options...)
		if err != nil {
			t.Fatal(err)
		}
		s.revision = resp.Header.Revision
	}
	for i := range keys {
		put(fmt.Sprintf("key-%d", i%200), strings.Repeat("v", i*37%5000))
	}
	if _, err := s.client.Compact(ctx, s.revision/2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Delete(ctx, "key-7"); err != nil {
		t.Fatal(err)
	}
	lease, err := s.client.Grant(ctx, 3600)
	if err != nil {
		t.Fatal(err)
	}
	s.lease = lease.ID
	put("leased", "x", clientv3.WithLease(lease.ID))
	if _, err := s.client.UserAdd(ctx, "somebody", "password"); err != nil {
		t.Fatal(err)
	}
	s.save(t)
	return s
}

// restoreOf restores a copy of a backup with the tool of a release.
func restoreOf(t *testing.T, backup string, with members.Release) Restore {
	t.Helper()
	r := Restore{
		Dir: t.TempDir(), DataDir: filepath.Join(t.TempDir(), "data"), Tool: with.Program(with.SnapshotTool()),
		Name: "m0", PeerURL: "http://m0.example:2380", ClusterToken: "a-token", Out: io.Discard, Err: io.Discard,
	}
	text, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.Dir, snapshotFile), string(text))
	return r
}

func parsed(t *testing.T, r members.Release) etcd.Version {
	t.Helper()
	v, err := etcd.ParseVersion(r.Version)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// etcd's own tool restores all data of every backup that etcd.RestoreFits accepts. The
// restored cluster can grow, and can be upgraded to the next minor.
func TestBackupsOfEachMinorInLaterOnes(t *testing.T) {
	t.Parallel() // members that join wait for seconds
	releases := members.Releases(t)
	for _, from := range releases {
		s := backUp(t, from, 600)
		for i, to := range releases {
			if etcd.RestoreFits(parsed(t, from), parsed(t, to)) != nil {
				continue
			}
			t.Run(from.Minor()+" into "+to.Minor(), func(t *testing.T) {
				t.Parallel()
				r := restoreOf(t, s.backup, to)
				if err := r.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				c := to.Start(t, members.Options{Data: r.DataDir})
				s.checkSame(t, c)
				members.Put(t, c.Client(t), "after", "x")
				joined := c.Join(t)
				s.checkSame(t, c, joined)
				if i+1 == len(releases) || from.Minor() != to.Minor() && from.Minor() != "3.4" {
					return
				}
				c.Become(t, releases[i+1])
				members.Put(t, c.Client(t), "upgraded", "x")
				s.checkSame(t, c, joined)
			})
		}
	}
}

// checkSame compares what a member of a cluster holds at the backup's revision.
func (s source) checkSame(t *testing.T, c *members.Cluster, to ...*members.Member) {
	t.Helper()
	client := c.Client(t, to...)
	members.Same(t, client, s.client, s.revision)
	members.Await(t, "look at leases and users", func(ctx context.Context) error {
		lease, err := client.TimeToLive(ctx, s.lease, clientv3.WithAttachedKeys())
		if err != nil {
			return err
		}
		users, err := client.UserList(ctx)
		if err != nil {
			return err
		}
		if lease.TTL <= 0 || len(lease.Keys) != 1 || len(users.Users) != 1 {
			t.Errorf("the lease is %+v, the users are %v", lease, users)
		}
		return nil
	})
}

// A raised revision makes watchers read everything again.
func TestTheRevisionIsRaised(t *testing.T) {
	t.Parallel() // members that join wait for seconds
	const bump = 1_000_000_000
	for _, release := range members.Releases(t) {
		if !parsed(t, release).HasBumpRevision() {
			continue
		}
		t.Run(release.Minor(), func(t *testing.T) {
			t.Parallel()
			s := backUp(t, release, 50)
			r := restoreOf(t, s.backup, release)
			r.BumpRevision = bump
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			client := release.Start(t, members.Options{Data: r.DataDir}).Client(t)
			all := members.Everything(t, client, 0)
			if all.Header.Revision < s.revision+bump || len(all.Kvs) != len(members.Everything(t, s.client, 0).Kvs) {
				t.Errorf("revision %d after %d, %d keys", all.Header.Revision, s.revision, len(all.Kvs))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if resp := <-client.Watch(ctx, "key-1", clientv3.WithRev(s.revision+1)); !errors.Is(resp.Err(), rpctypes.ErrCompacted) {
				t.Errorf("a watch from before says %v", resp.Err())
			}
		})
	}
}

// The tool refuses a file that is not a backup, and the error quotes the tool.
func TestWhatIsNoBackupIsRefused(t *testing.T) {
	for _, release := range members.Releases(t) {
		s := backUp(t, release, 50)
		r := restoreOf(t, s.backup, release)
		text, err := os.ReadFile(s.backup)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		write(t, filepath.Join(r.Dir, snapshotFile), string(text))
		var says bytes.Buffer
		r.Err = &says
		err = r.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), release.SnapshotTool()+" can't restore the backup (exit status") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", release, err)
		}
		if says.Len() == 0 || !strings.HasSuffix(err.Error(), lastOf(says.String())) {
			t.Errorf("%s: the tool said %q, and the error is %v", release, says.String(), err)
		}
		if _, err := os.Stat(r.DataDir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is a data directory: %v", release, err)
		}
	}
}

func lastOf(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// oldestAndNewest are the releases between which the tools differ: before 3.5, etcdctl restores.
func oldestAndNewest(t *testing.T) []members.Release {
	t.Helper()
	all := members.Releases(t)
	return []members.Release{all[0], all[len(all)-1]}
}

// The test kills the command again and again, each time a little later, until it completes:
// with all the data, and nothing left over.
func TestKilledInBetweenItBeginsAnew(t *testing.T) {
	t.Parallel() // members that join wait for seconds
	for _, release := range oldestAndNewest(t) {
		t.Run(release.Minor(), func(t *testing.T) {
			t.Parallel()
			s := backUp(t, release, 3000)
			r := restoreOf(t, s.backup, release)
			killed := 0
			for patience := time.Millisecond; ; patience += patience / 4 {
				if _, err := os.Stat(filepath.Join(r.DataDir, "member", "wal")); err == nil {
					if _, err := os.Stat(filepath.Join(r.DataDir, "member", "snap", "db")); err != nil {
						t.Errorf("a data directory is there before it is complete: %v", err)
					}
				}
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-dir="+r.Dir, "-data-dir="+r.DataDir, "-tool="+r.Tool,
					"-name="+r.Name, "-peer-url="+r.PeerURL, "-initial-cluster-token="+r.ClusterToken)
				cmd.Env = append(os.Environ(), asRestore+"=yes")
				cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				var said bytes.Buffer
				cmd.Stderr = &said
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // it may have ended
				err := cmd.Wait()
				timer.Stop()
				if err == nil {
					break
				}
				if cmd.ProcessState.Exited() {
					t.Fatalf("%v: %s", err, said.String())
				}
				killed++
			}
			t.Logf("killed %d times", killed)
			if killed == 0 {
				t.Error("it was never killed: the test proves nothing")
			}
			if got := left(t, r.Dir) + ", " + left(t, filepath.Dir(r.DataDir)); got != "done, data data.member" {
				t.Errorf("there is now %s", got)
			}
			s.checkSame(t, release.Start(t, members.Options{Data: r.DataDir}))
		})
	}
}
