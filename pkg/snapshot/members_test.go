//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/test/members"
)

func sourceOf(t *testing.T, list ...*members.Member) snapshot.Source {
	t.Helper()
	var src snapshot.Source
	for _, m := range list {
		ep, err := etcd.ParseEndpoint(m.URL, false)
		if err != nil {
			t.Fatal(err)
		}
		src.Endpoints = append(src.Endpoints, ep)
	}
	return src
}

// fill writes keys of mixed sizes, and more than once, until about so many MiB are
// written.
func fill(t *testing.T, client *clientv3.Client, mib int) {
	t.Helper()
	for i, written := 0, 0; written < mib<<20; i++ {
		size := []int{10, 300, 4000, 100_000, 900_000}[i%5]
		if _, err := client.Put(soon(t), fmt.Sprintf("filled-%d", i%1000), strings.Repeat("A", size)); err != nil {
			t.Fatal(err)
		}
		written += size
	}
}

// steady keeps members from looking for another leader when the machine lets them wait.
var steady = []string{"--heartbeat-interval=100", "--election-timeout=5000"}

func urlsOf(list []*members.Member) (urls []string) {
	for _, m := range list {
		urls = append(urls, m.URL)
	}
	return urls
}

// save takes a snapshot into a file.
func save(t *testing.T, src snapshot.Source, silent ...string) (*snapshot.Snapshot, string) {
	t.Helper()
	s := open(t, src, silent...)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, sum), s)
	if err := errors.Join(err, file.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); s.SHA256() != got || s.Size != n {
		t.Errorf("size %d and sha256 %s were reported for %d bytes with %s", s.Size, s.SHA256(), n, got)
	}
	return s, path
}

// restoredEquals restores a snapshot and compares it with what it was taken from,
// which has not been compacted since.
func restoredEquals(t *testing.T, r members.Release, s *snapshot.Snapshot, path string, source *clientv3.Client) {
	t.Helper()
	status := r.SnapshotStatus(t, path)
	if status.TotalSize != s.Size-etcd.SnapshotTrailer && status.TotalSize != s.Size {
		t.Errorf("the tool counts %d bytes, the snapshot reported %d", status.TotalSize, s.Size)
	}
	if s.Revision > status.Revision {
		t.Errorf("it holds revision %d, the snapshot reported at least %d", status.Revision, s.Revision)
	}
	members.Same(t, r.Restore(t, path), source, status.Revision)
}

func TestASnapshotUnderWritesRestores(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			c := r.Start(t, members.Options{Size: 3, Flags: steady})
			source := c.Client(t)
			fill(t, source, 8)
			writing, stop := context.WithCancel(t.Context())
			acknowledged := make(chan int64, 1) // the newest
			acknowledged <- 0
			var writer sync.WaitGroup
			writer.Go(func() {
				for i := 0; ; i++ {
					resp, err := source.Put(writing, fmt.Sprintf("under-way-%d", i), strings.Repeat("B", 1000))
					if err != nil {
						return // stopped
					}
					<-acknowledged
					acknowledged <- resp.Header.Revision
				}
			})
			defer writer.Wait()
			defer stop()
			var before int64
			for begun := time.Now(); before == 0 || time.Since(begun) < 100*time.Millisecond; time.Sleep(time.Millisecond) { // lets some writes through
				if time.Since(begun) > time.Minute {
					t.Fatal("no write was acknowledged")
				}
				before = <-acknowledged
				acknowledged <- before
			}
			s, path := save(t, sourceOf(t, c.Members...))
			stop()
			writer.Wait()
			_, followers := c.Leader(t)
			if s.Version != r.Version || !s.Linearizable || s.Revision < before || before == 0 {
				t.Errorf("version %s, linearizable %t, revision %d; want %s, true, and at least %d", s.Version, s.Linearizable, s.Revision, r.Version, before)
			}
			if s.Endpoint != followers[0].URL && s.Endpoint != followers[1].URL {
				t.Errorf("it was taken from %s, which is no follower", s.Endpoint)
			}
			restoredEquals(t, r, s, path, source)
		})
	}
}

func TestWithoutWritesTheRevisionIsExact(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			c := r.Start(t, members.Options{})
			fill(t, c.Client(t), 1)
			s, path := save(t, sourceOf(t, c.Members...))
			if got := r.SnapshotStatus(t, path).Revision; got != s.Revision {
				t.Errorf("it holds revision %d, %d was reported", got, s.Revision)
			}
		})
	}
}

func TestMembersThatAreDownOrLagAreNotTaken(t *testing.T) {
	r := members.ReleaseOf(t, "3.6")
	c := r.Start(t, members.Options{Size: 3, Flags: steady})
	leader, followers := c.Leader(t)
	frozen, other := followers[0], followers[1]
	client := c.Client(t, leader)
	fill(t, client, 1)
	frozen.Freeze(t)
	fill(t, client, 1)
	if s := open(t, sourceOf(t, frozen, leader, other), frozen.URL); s.Endpoint != other.URL || !s.Linearizable {
		t.Errorf("with a frozen follower it is taken from %s, linearizable %t, want %s", s.Endpoint, s.Linearizable, other.URL)
	}
	frozen.Thaw(t)
	c.WaitServing(t)
	other.Kill(t)
	if s := open(t, sourceOf(t, other, leader, frozen), other.URL); s.Endpoint != frozen.URL || !s.Linearizable {
		t.Errorf("with a dead follower it is taken from %s, linearizable %t, want %s", s.Endpoint, s.Linearizable, frozen.URL)
	}
}

func TestWhenTheLeaderIsGoneItsSuccessorIsWaitedFor(t *testing.T) {
	const patience = 5 * time.Second // of pkg/snapshot
	c := members.ReleaseOf(t, "3.6").Start(t, members.Options{Size: 3})
	fill(t, c.Client(t), 1)
	for {
		leader, _ := c.Leader(t)
		leader.Kill(t)
		begin := time.Now()
		s, err := snapshot.Open(soon(t), sourceOf(t, c.Members...))
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		_ = s.Close()
		if s.Linearizable && s.Endpoint != leader.URL {
			return
		}
		if took < patience {
			t.Fatalf("it is taken from %s, linearizable %t, after %s", s.Endpoint, s.Linearizable, took)
		}
		t.Logf("on this machine the election takes more than %s: once more", patience)
		leader.Start(t)
		c.WaitServing(t)
	}
}

func TestWithoutAQuorumTheLastMemberIsBackedUp(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			c := r.Start(t, members.Options{Size: 3, Flags: steady})
			client := c.Client(t)
			fill(t, client, 1)
			want := members.Everything(t, client, 0)
			c.WaitServing(t) // each has all that was written
			leader, followers := c.Leader(t)
			leader.Kill(t)
			followers[0].Kill(t)
			s, path := save(t, sourceOf(t, c.Members...), urlsOf(c.Members)...) // there is nothing to agree on
			if s.Linearizable || s.Endpoint != followers[1].URL {
				t.Errorf("it is taken from %s, linearizable %t, want %s and false", s.Endpoint, s.Linearizable, followers[1].URL)
			}
			got := members.Everything(t, r.Restore(t, path), 0)
			if len(got.Kvs) != len(want.Kvs) || got.Header.Revision != want.Header.Revision {
				t.Errorf("%d keys at revision %d were restored, want %d at %d", len(got.Kvs), got.Header.Revision, len(want.Kvs), want.Header.Revision)
			}
		})
	}
}

func TestAMemberThatDiesWhileItSends(t *testing.T) {
	for name, strike := range map[string]func(*members.Member, *testing.T){
		"killed": func(m *members.Member, t *testing.T) { m.Kill(t) },
		"frozen": func(m *members.Member, t *testing.T) { m.Freeze(t) },
	} {
		t.Run(name, func(t *testing.T) {
			c := members.ReleaseOf(t, "3.7").Start(t, members.Options{Size: 3})
			fill(t, c.Client(t), 64) // more than what connections hold
			leader, _ := c.Leader(t)
			s := open(t, sourceOf(t, leader))
			first := make([]byte, 1<<20)
			if _, err := io.ReadFull(s, first); err != nil {
				t.Fatal(err)
			}
			strike(leader, t)
			n, err := io.Copy(io.Discard, s)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("broke off after %d of %d bytes", n+1<<20, s.Size)) {
				t.Errorf("after %d bytes more of %d the error is %v", n, s.Size, err)
			}
		})
	}
}

func TestASnapshotOverTLS(t *testing.T) {
	authority := members.NewTLS(t)
	c := members.ReleaseOf(t, "3.6").Start(t, members.Options{TLS: authority})
	fill(t, c.Client(t), 1)
	src := sourceOf(t, c.Members...)
	src.TLS = authority.ClientConfig(t, "anybody")
	save(t, src)
	src.Endpoints[0].URL = strings.Replace(src.Endpoints[0].URL, "127.0.0.1", "localhost", 1)
	save(t, src)

	stranger := etcdtest.NewCA(t, "stranger")
	cert, key := stranger.Issue(etcdtest.Leaf{Name: "stranger"})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	unknown := authority.ClientConfig(t, "anybody")
	unknown.Certificates = []tls.Certificate{pair}
	other := etcd.Endpoint{URL: strings.Replace(src.Endpoints[0].URL, "localhost", "other.invalid", 1), IP: "127.0.0.1"}
	for name, src := range map[string]snapshot.Source{
		"the client has no configuration":       {Endpoints: src.Endpoints},
		"the client's certificate is unknown":   {Endpoints: src.Endpoints, TLS: unknown},
		"the client does not show one":          {Endpoints: src.Endpoints, TLS: &tls.Config{RootCAs: unknown.RootCAs}},
		"the client does not know the member's": {Endpoints: src.Endpoints, TLS: &tls.Config{Certificates: src.TLS.Certificates}},
		"the member has another name":           {Endpoints: []etcd.Endpoint{other}, TLS: src.TLS},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Open(soon(t), src)
			if !errors.Is(err, snapshot.ErrNoMember) || !etcd.IsTLSFailure(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestWithAuthenticationASnapshotNeedsRoot(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			authority := members.NewTLS(t)
			c := r.Start(t, members.Options{TLS: authority})
			client, ctx := c.Client(t), soon(t)
			must := func(_ any, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(client.UserAdd(ctx, "root", "password"))
			must(client.UserAdd(ctx, "reader", "password"))
			must(client.UserGrantRole(ctx, "root", "root"))
			must(client.AuthEnable(ctx))
			src := sourceOf(t, c.Members...)
			src.TLS = authority.ClientConfig(t, "root")
			save(t, src)
			for _, user := range []string{"reader", ""} {
				src.TLS = authority.ClientConfig(t, user)
				_, err := snapshot.Open(ctx, src)
				if !etcd.IsDenied(err) || !strings.Contains(err.Error(), "a user with the role root") {
					t.Errorf("user %q: %v", user, err)
				}
			}
			// A user that logs in counts more than the certificate's.
			src.User = etcd.Credentials{Username: "root", Password: "password"}
			save(t, src)
			src.User.Password = "wrong"
			if _, err := snapshot.Open(ctx, src); !etcd.RefusesUser(err) {
				t.Errorf("with a wrong password: %v", err)
			}
		})
	}
}

func TestAMemberWithTheAlarmCorruptIsNotTaken(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			c := r.Start(t, members.Options{Size: 3, Flags: steady})
			client, ctx := c.Client(t), soon(t)
			fill(t, client, 1)
			_, followers := c.Leader(t)
			status, err := client.Status(ctx, followers[0].URL)
			if err != nil {
				t.Fatal(err)
			}
			_, err = etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
				Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: etcdserverpb.AlarmType_CORRUPT,
			})
			if err != nil {
				t.Fatal(err)
			}
			s, _ := save(t, sourceOf(t, c.Members...))
			if s.Endpoint != followers[1].URL {
				t.Errorf("it is taken from %s, want the other follower %s", s.Endpoint, followers[1].URL)
			}
			if !s.Linearizable {
				t.Error("it is not said to be linearizable, though there is a quorum")
			}
			if _, err := snapshot.Open(ctx, sourceOf(t, followers[0])); !errors.Is(err, snapshot.ErrNoMember) || !strings.Contains(err.Error(), "CORRUPT") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// proxy is between client and members: it hands each connection to the next of
// them, and what they send through a function.
func proxy(t *testing.T, edit func([]byte) []byte, to ...*members.Member) etcd.Endpoint {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for i := 0; ; i++ {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			member, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(to[i%len(to)].URL, "http://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			done := context.AfterFunc(ctx, func() { _ = errors.Join(client.Close(), member.Close()) })
			serving.Go(func() {
				_, _ = io.Copy(member, client)
				_ = member.Close()
			})
			serving.Go(func() {
				defer done()
				defer client.Close()
				buffer := make([]byte, 16<<10)
				for {
					n, err := member.Read(buffer)
					sent := edit(buffer[:n])
					if _, failed := client.Write(sent); failed != nil || err != nil || len(sent) < n {
						return
					}
				}
			})
		}
	})
	return etcd.Endpoint{URL: "http://" + listener.Addr().String()}
}

func TestBytesThatChangeOnTheWayAreFound(t *testing.T) {
	c := members.ReleaseOf(t, "3.6").Start(t, members.Options{})
	fill(t, c.Client(t), 4)
	whole := open(t, sourceOf(t, c.Members...)).Size // a commit of etcd may still add pages
	for name, edit := range map[string]func(passed int64, data []byte) []byte{
		"a byte flips": func(passed int64, data []byte) []byte {
			if at := bytes.Index(data, []byte("AAAAAAAA")); at >= 0 && passed > whole/2 && passed < whole/2+1<<17 {
				data[at] = 'X'
			}
			return data
		},
		"it is cut": func(passed int64, data []byte) []byte {
			if passed > whole/2 {
				return nil
			}
			return data
		},
		"it is cut at the end": func(passed int64, data []byte) []byte {
			if passed > whole {
				return nil
			}
			return data
		},
	} {
		t.Run(name, func(t *testing.T) {
			var passed int64
			src := snapshot.Source{Endpoints: []etcd.Endpoint{proxy(t, func(data []byte) []byte {
				passed += int64(len(data)) // of the one connection
				return edit(passed, data)
			}, c.Members...)}}
			s, err := snapshot.Open(soon(t), src)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			n, err := io.Copy(io.Discard, s)
			if err == nil {
				t.Fatal("the snapshot counts as whole")
			}
			if damaged := name == "a byte flips"; errors.Is(err, snapshot.ErrDamaged) != damaged {
				t.Errorf("after %d of %d bytes: %v, want that it is damaged: %v", n, s.Size, err, damaged)
			} else if !damaged && !strings.Contains(err.Error(), fmt.Sprintf("broke off after %d of %d bytes", n, s.Size)) {
				t.Errorf("after %d of %d bytes: %v, want that it broke off", n, s.Size, err)
			}
		})
	}
}

func TestBehindAServiceEachSnapshotIsOfOneMember(t *testing.T) {
	r := members.ReleaseOf(t, "3.5")
	c := r.Start(t, members.Options{Size: 3})
	client := c.Client(t)
	fill(t, client, 2)
	service := proxy(t, func(data []byte) []byte { return data }, c.Members...)
	for range 6 {
		s, path := save(t, snapshot.Source{Endpoints: []etcd.Endpoint{service}})
		if got := r.SnapshotStatus(t, path).Revision; got != s.Revision || !s.Linearizable {
			t.Errorf("it holds revision %d, linearizable %t; %d was reported", got, s.Linearizable, s.Revision)
		}
	}
}
