// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// content is a database of 20 pieces and a bit.
func content() []byte {
	db := make([]byte, 20*32<<10+4096)
	for i := range db {
		db[i] = byte(i >> 5)
	}
	return db
}

// member plays one of a cluster that member 1 leads.
func member(id uint64, edits ...func(*etcdtest.Member)) *etcdtest.Member {
	m := &etcdtest.Member{
		Status: &etcdserverpb.StatusResponse{
			Header:  &etcdserverpb.ResponseHeader{MemberId: id, ClusterId: 9, Revision: 40},
			Version: "3.6.16", Leader: 1,
		},
		Snapshot: etcdtest.StreamOf(content()),
	}
	for _, edit := range edits {
		edit(m)
	}
	return m
}

func endpoint(m *etcdtest.Member) etcd.Endpoint {
	return etcd.Endpoint{URL: "http://" + m.IP + ":" + m.Port}
}

func start(t *testing.T, members ...*etcdtest.Member) snapshot.Source {
	t.Helper()
	var src snapshot.Source
	for _, m := range members {
		src.Endpoints = append(src.Endpoints, endpoint(m.Start(t)))
	}
	return src
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestASnapshotIsTheDatabaseWithItsSum(t *testing.T) {
	src := start(t, member(1), member(2))
	s := open(t, src)
	if s.SHA256() != "" {
		t.Errorf("the sum is %s before anything was read", s.SHA256())
	}
	got, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	want := content()
	sum := sha256.Sum256(want)
	want = append(want, sum[:]...)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes were read that are not the %d of the database and its sum", len(got), len(want))
	}
	if whole := sha256.Sum256(want); s.SHA256() != hex.EncodeToString(whole[:]) {
		t.Errorf("sha256 %s, want %x", s.SHA256(), whole)
	}
	if s.Size != int64(len(want)) || s.Revision != 40 || s.Version != "3.6.16" || !s.Linearizable || s.Endpoint != src.Endpoints[1].URL {
		t.Errorf("size %d, revision %d, version %s, linearizable %t, endpoint %s; want %d, 40, 3.6.16, true and the follower %s",
			s.Size, s.Revision, s.Version, s.Linearizable, s.Endpoint, len(want), src.Endpoints[1].URL)
	}
	if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the end %d bytes were read, %v", n, err)
	}
}

func TestTheNextBestMemberIsTakenWhereOneSendsNothing(t *testing.T) {
	src := start(t, member(1), member(2, func(m *etcdtest.Member) { m.Refusal = status.Error(codes.Unavailable, "stopping") }))
	if s := open(t, src); s.Endpoint != src.Endpoints[0].URL {
		t.Errorf("the snapshot comes from %s, want %s", s.Endpoint, src.Endpoints[0].URL)
	}
}

func TestADeadEndpointDoesNotHinder(t *testing.T) {
	src := start(t, member(1), member(2))
	dead := []string{"http://127.0.0.1:1", "http://127.0.0.2:1"}
	src.Endpoints = append([]etcd.Endpoint{{URL: dead[0]}, {URL: dead[1]}}, src.Endpoints...)
	src.Endpoints = append(src.Endpoints, src.Endpoints...) // named twice
	if s := open(t, src, dead...); s.Endpoint != src.Endpoints[3].URL {
		t.Errorf("the snapshot comes from %s, want the follower", s.Endpoint)
	}
}

func TestWithoutAQuorumASnapshotIsMadeAndToldApart(t *testing.T) {
	src := start(t, member(2, func(m *etcdtest.Member) {
		m.NoQuorum, m.Status.Leader = status.Error(codes.Internal, "no quorum"), 0
		m.Status.RaftAppliedIndex, m.Status.RaftIndex = 20, 23
	}))
	if s := open(t, src); s.Linearizable || s.Unapplied != 3 {
		t.Errorf("it is said to be linearizable: %t, and to hold %d entries more", s.Linearizable, s.Unapplied)
	}
}

func TestWhyNoSnapshotIsMade(t *testing.T) {
	refuse := func(err error) func(*etcdtest.Member) { return func(m *etcdtest.Member) { m.Refusal = err } }
	for name, c := range map[string]struct {
		src    snapshot.Source
		want   string
		denied bool
	}{
		"no endpoint":        {snapshot.Source{}, "there is no endpoint", false},
		"nobody listens":     {snapshot.Source{Endpoints: []etcd.Endpoint{{URL: "http://127.0.0.1:1"}}}, "http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused", false},
		"a user is missing":  {start(t, member(1, refuse(rpctypes.ErrGRPCUserEmpty))), "user with the role root", true},
		"a user is not root": {start(t, member(1, refuse(rpctypes.ErrGRPCPermissionDenied))), "user with the role root", true},
		"as etcd 3.5 has it": {start(t, member(1, refuse(status.Error(codes.Unknown, "auth: permission denied")))), "user with the role root", true},
		"an empty stream":    {start(t, member(1, func(m *etcdtest.Member) { m.Snapshot = nil })), "unexpected EOF", false},
		"a size that can't be": {start(t, member(1, func(m *etcdtest.Member) {
			m.Status.DbSize, m.Snapshot.Pieces[0].RemainingBytes = 4096, 5e17
		})), "announces a snapshot of 500000000000032800 bytes, and its database has 4096", false},
		"a negative size": {start(t, member(1, func(m *etcdtest.Member) {
			m.Snapshot.Pieces[0].RemainingBytes = 1 << 63
		})), "announces a snapshot without a size", false},
		"all of them refuse": {start(t, member(1, refuse(status.Error(codes.Internal, "disk"))), member(2, refuse(status.Error(codes.Internal, "disk")))), "desc = disk; http", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Open(soon(t), c.src)
			if !errors.Is(err, snapshot.ErrNoMember) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if etcd.IsDenied(err) != c.denied {
				t.Errorf("denied %t: %v", !c.denied, err)
			}
		})
	}
}

// A wrong scheme is the commonest mistake about endpoints. gRPC's error does not show the remedy.
func TestAnEndpointOfTheWrongSchemeIsTold(t *testing.T) {
	// etcd closes connections that begin with TLS where it serves without.
	plain, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var closing sync.WaitGroup
	closing.Go(func() {
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			conn.Close()
		}
	})
	defer closing.Wait()
	defer plain.Close()
	other := httptest.NewTLSServer(nil)
	t.Cleanup(other.Close)
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	web := httptest.NewServer(nil)
	t.Cleanup(web.Close)
	for url, want := range map[string]string{
		"https://" + plain.Addr().String():               "write http:// before the endpoint if etcd serves without TLS",
		strings.Replace(other.URL, "https:", "http:", 1): "write https:// before the endpoint if etcd serves with TLS",
		web.URL: "or correct its host and port",
	} {
		src := snapshot.Source{Endpoints: []etcd.Endpoint{{URL: url}}}
		if strings.HasPrefix(url, "https:") {
			src.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		_, err := snapshot.Open(soon(t), src)
		if !errors.Is(err, snapshot.ErrNoMember) || !strings.Contains(err.Error(), url+": it answers, and not ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestASnapshotThatBreaksOffSaysHowFarItCame(t *testing.T) {
	db := content()
	whole := int64(len(db)) + etcd.SnapshotTrailer
	part := func(edit func(*etcdtest.Stream)) func(*etcdtest.Member) {
		return func(m *etcdtest.Member) {
			m.Snapshot.Pieces = m.Snapshot.Pieces[:4]
			edit(m.Snapshot)
		}
	}
	for name, c := range map[string]struct {
		edit    func(*etcdtest.Member)
		want    string
		damaged bool
	}{
		"with an error": {part(func(s *etcdtest.Stream) { s.Err = status.Error(codes.Unavailable, "gone") }), fmt.Sprintf("broke off after %d of %d bytes", 4*32<<10, whole), false},
		"without one":   {part(func(*etcdtest.Stream) {}), fmt.Sprintf("ends after %d of %d bytes", 4*32<<10, whole), true},
		"with no content": {part(func(s *etcdtest.Stream) {
			s.Pieces = append(s.Pieces, &etcdserverpb.SnapshotResponse{RemainingBytes: 5})
		}), "can't read its database", false},
		"with a sum that does not fit": {func(m *etcdtest.Member) {
			sum := m.Snapshot.Pieces[len(m.Snapshot.Pieces)-1]
			sum.Blob = bytes.Repeat([]byte{7}, len(sum.Blob))
		}, "does not fit the sha256", true},
		"with a piece that is missing": {func(m *etcdtest.Member) {
			m.Snapshot.Pieces = append(m.Snapshot.Pieces[:3:3], m.Snapshot.Pieces[4:]...)
		}, "ends after", true},
	} {
		t.Run(name, func(t *testing.T) {
			src := start(t, member(1, c.edit))
			s := open(t, src)
			_, err := io.Copy(io.Discard, s)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), src.Endpoints[0].URL) {
				t.Errorf("error %v, want %q and the endpoint in it", err, c.want)
			}
			if errors.Is(err, snapshot.ErrDamaged) != c.damaged {
				t.Errorf("damaged %t: %v", !c.damaged, err)
			}
			if _, again := s.Read(make([]byte, 1)); again == nil || again.Error() != err.Error() || s.SHA256() != "" {
				t.Errorf("after the error, Read says %v and the sum is %q", again, s.SHA256())
			}
		})
	}
}

// stalled is a member that stops to send.
func stalled(m *etcdtest.Member) {
	m.Snapshot.Pieces, m.Snapshot.Stall = m.Snapshot.Pieces[:1], true
}

func TestReadEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(soon(t))
	s, err := snapshot.Open(ctx, start(t, member(1, stalled)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := io.ReadFull(s, make([]byte, 32<<10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "after 32768 of") {
		t.Errorf("error %v", err)
	}
	if _, err := snapshot.Open(ctx, start(t, member(1))); !errors.Is(err, context.Canceled) {
		t.Errorf("opened with a context that has ended: %v", err)
	}
}

func TestCloseEndsRead(t *testing.T) {
	s := open(t, start(t, member(1, stalled)))
	ended := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, s)
		ended <- err
	}()
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a snapshot that was closed is read to its end")
	}
}

// held counts what leaks: goroutines, and file descriptors of this process.
func held(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine() + len(files)
}

func TestTwoHundredSnapshotsLeaveNothingBehind(t *testing.T) {
	src := start(t, member(1), member(2), member(3, stalled))
	dead := etcd.Endpoint{URL: "http://127.0.0.1:1"}
	take := func(i int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// One in four is read to its end, one is closed early, one stalls and is
		// cancelled, one can't be opened.
		src := snapshot.Source{Endpoints: []etcd.Endpoint{src.Endpoints[[]int{1, 1, 2, 0}[i%4]], dead}}
		if i%4 == 3 {
			src.Endpoints = src.Endpoints[1:]
		}
		s, err := snapshot.Open(ctx, src)
		if i%4 == 3 {
			if err == nil {
				t.Fatal("opened a snapshot of nobody")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		switch i % 4 {
		case 0:
			_, err = io.Copy(io.Discard, s)
		case 1:
			_, err = io.ReadFull(s, make([]byte, 100))
		case 2:
			_, err = io.ReadFull(s, make([]byte, 32<<10))
			cancel()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	most := held(t) + 10 // what the first one starts for all of them
	for i := range 200 {
		take(i)
	}
	after := held(t)
	for deadline := time.Now().Add(time.Minute); after > most && time.Now().Before(deadline); after = held(t) {
		time.Sleep(10 * time.Millisecond) // connections end on their own goroutines
	}
	if after > most {
		buffer := make([]byte, 1<<20)
		t.Errorf("%d goroutines and descriptors, at most %d should be left\n%s", after, most, buffer[:runtime.Stack(buffer, true)])
	}
}
