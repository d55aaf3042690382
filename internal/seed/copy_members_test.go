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
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/members"
)

const owner = "the-uid"

// copyOf copies a running etcd into directories of the test.
func copyOf(t *testing.T, c *members.Cluster) Copy {
	t.Helper()
	status, err := c.Client(t).Status(t.Context(), c.Members[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	cp := Copy{
		ClusterID: etcd.FormatID(status.Header.ClusterId), Owner: owner,
		Dir: t.TempDir(), DataDir: filepath.Join(t.TempDir(), "data"), Out: io.Discard, Err: io.Discard,
	}
	for _, m := range c.Members {
		cp.Endpoints = append(cp.Endpoints, etcd.Endpoint{URL: m.URL})
	}
	return cp
}

// raise makes an etcd refuse all writes, or accept them again.
func raise(t *testing.T, c *members.Cluster, user etcd.Credentials, fenced bool) {
	t.Helper()
	client := etcd.NewClient(nil)
	client.SetCredentials(user)
	defer client.Close()
	conn, err := client.Conn(etcd.Endpoint{URL: c.Members[0].URL})
	if err != nil {
		t.Fatal(err)
	}
	members.Await(t, "change the fence", func(ctx context.Context) error {
		if fenced {
			return conn.Raise(ctx, etcd.Fence(owner))
		}
		return conn.Disarm(ctx, etcd.Fence(owner))
	})
}

// A copy waits until nobody can write. A cluster of each later release that starts on it has every
// write that was acknowledged, at the same revision, and refuses writes until somebody lifts the alarm.
func TestACopyHasEveryAcknowledgedWrite(t *testing.T) {
	t.Parallel() // it waits for writers
	releases := members.Releases(t)
	type pair struct{ from, to members.Release }
	var pairs []pair
	for i, r := range releases {
		pairs = append(pairs, pair{r, r})
		if i+1 < len(releases) {
			pairs = append(pairs, pair{r, releases[i+1]})
		}
	}
	for _, p := range pairs {
		from, to := p.from, p.to
		t.Run(from.Minor()+" into "+to.Minor(), func(t *testing.T) {
			t.Parallel()
			source := from.Start(t, members.Options{Size: 3})
			client := source.Client(t)
			cp := copyOf(t, source)
			if err := cp.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var writing, copying sync.WaitGroup
			var last int64
			acknowledged := map[string]string{}
			underWay := make(chan struct{})
			started := sync.OnceFunc(func() { close(underWay) })
			writing.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					key, value := fmt.Sprint("key-", n%100), fmt.Sprint(n)
					resp, err := client.Put(ctx, key, value)
					if errors.Is(err, rpctypes.ErrCorrupt) {
						return
					}
					if err == nil {
						last, acknowledged[key] = resp.Header.Revision, value
					}
					if last >= 20 {
						started()
					}
				}
			})
			var failed error
			copying.Go(func() { failed = cp.Run(ctx) })
			select { // a busy machine makes five writes in a second
			case <-underWay:
			case <-ctx.Done():
				t.Fatal("there are no twenty writes after a minute")
			}
			if _, err := os.Stat(filepath.Join(cp.Dir, snapshotFile)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a copy before the fence: %v", err)
			}
			raise(t, source, etcd.Credentials{}, true)
			writing.Wait()
			copying.Wait()
			if failed != nil {
				t.Fatal(failed)
			}
			r := restoreOf(t, filepath.Join(cp.Dir, snapshotFile), to)
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			target := to.Start(t, members.Options{Data: r.DataDir})
			all := members.Everything(t, target.Client(t), 0)
			if all.Header.Revision != last || last < 10 {
				t.Errorf("the copy is at revision %d, and %d is acknowledged", all.Header.Revision, last)
			}
			for _, kv := range all.Kvs {
				if acknowledged[string(kv.Key)] != string(kv.Value) {
					t.Errorf("%s is %s, and %s is acknowledged", kv.Key, kv.Value, acknowledged[string(kv.Key)])
				}
			}
			if _, err := target.Client(t).Put(ctx, "a", "b"); !errors.Is(err, rpctypes.ErrCorrupt) {
				t.Errorf("a write to the copy: %v", err)
			}
			raise(t, target, etcd.Credentials{}, false)
			members.Put(t, target.Client(t), "a", "b")
		})
	}
}

// checkHindered runs Check until it names a reason, and ends it then.
func checkHindered(t *testing.T, cp Copy, reason string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cp.Err = says{reason, cancel}
	if err := cp.Check(ctx); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("%v, want %s", err, reason)
	}
}

// says calls then once text has come.
type says struct {
	text string
	then func()
}

func (s says) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.then()
	}
	return len(p), nil
}

func TestACopyKnowsItsSource(t *testing.T) {
	t.Parallel()
	release := members.ReleaseOf(t, "3.6")
	source := release.Start(t, members.Options{})
	client := source.Client(t)
	for _, step := range []func() error{
		func() error { _, err := client.UserAdd(t.Context(), "root", "secret-word"); return err },
		func() error { _, err := client.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := client.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	login := t.TempDir()
	write(t, filepath.Join(login, "username"), "root")
	write(t, filepath.Join(login, "password"), "secret-word")
	cp := copyOf(t, release.Start(t, members.Options{}))
	cp.Endpoints = []etcd.Endpoint{{URL: source.Members[0].URL}}
	checkHindered(t, cp, "user name is empty")
	cp.UserDir = login
	checkHindered(t, cp, "and the one to copy has "+cp.ClusterID)
	logged, err := clientv3.New(clientv3.Config{Endpoints: []string{source.Members[0].URL}, Username: "root", Password: "secret-word"})
	if err != nil {
		t.Fatal(err)
	}
	defer logged.Close()
	status, err := logged.Status(t.Context(), source.Members[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	cp.ClusterID = etcd.FormatID(status.Header.ClusterId)
	if err := cp.Check(t.Context()); err != nil {
		t.Errorf("with a user: %v", err)
	}
	raise(t, source, etcd.Credentials{Username: "root", Password: "secret-word"}, true)
	var said bytes.Buffer
	cp.Out, cp.Err = &said, &said
	if err := cp.Run(t.Context()); err != nil {
		t.Errorf("with a user: %v", err)
	}
	if strings.Contains(said.String(), "secret-word") {
		t.Errorf("it says the password: %s", said.String())
	}
	if info, err := os.Stat(filepath.Join(cp.Dir, snapshotFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy is %v, %v", info, err)
	}
}

// A source that dies between the fence and the copy is waited for.
func TestACopyWaitsForItsSource(t *testing.T) {
	t.Parallel()
	source := members.ReleaseOf(t, "3.6").Start(t, members.Options{})
	members.Put(t, source.Client(t), "a", "1")
	cp := copyOf(t, source)
	raise(t, source, etcd.Credentials{}, true)
	source.Members[0].Kill(t)
	var copying sync.WaitGroup
	var failed error
	copying.Go(func() { failed = cp.Run(t.Context()) })
	time.Sleep(2 * time.Second)
	source.Members[0].Start(t)
	copying.Wait()
	if failed != nil {
		t.Error(failed)
	}
}
