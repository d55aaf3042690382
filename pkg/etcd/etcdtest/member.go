// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdtest simulates members of etcd for tests. It implements the API by which the
// operator observes and changes members, without raft and storage. Only tests may import it.
package etcdtest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Member is one member as its clients see it. Set its answers before the first request. A nil
// answer is an empty one.
type Member struct {
	etcdserverpb.UnimplementedClusterServer

	// Status is what it reports of itself.
	Status *etcdserverpb.StatusResponse
	// Agreed is the membership by a linearizable read. NoQuorum is the error of every
	// linearizable read. Remembered is the membership by a serializable read.
	Agreed     []*etcdserverpb.Member
	NoQuorum   error
	Remembered []*etcdserverpb.Member
	// Snapshot is the answer to a request for a snapshot.
	Snapshot *Stream
	// Events are what each watch gets. Fragments precede them: the first parts of the same response.
	Events    []*mvccpb.Event
	Fragments [][]*mvccpb.Event
	// Refusal is the error of each change, and of each request for a snapshot.
	Refusal error
	// TLS is nil for plain text.
	TLS *tls.Config
	// Hang makes it accept requests and never answer them.
	Hang bool
	// Slow is how long it takes to report its status.
	Slow time.Duration

	IP   string
	Port string

	mu      sync.Mutex
	changes []any
}

// Start serves on an address of the loopback interface until the test ends.
func (m *Member) Start(t testing.TB) *Member {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for a member: %v", err)
	}
	address := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // it listens on TCP
	m.IP, m.Port = address.IP.String(), strconv.Itoa(address.Port)

	var opts []grpc.ServerOption
	if m.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(m.TLS)))
	}
	server := grpc.NewServer(opts...)
	etcdserverpb.RegisterClusterServer(server, m)
	etcdserverpb.RegisterMaintenanceServer(server, maintenance{m: m})
	etcdserverpb.RegisterKVServer(server, keys{m: m})
	etcdserverpb.RegisterWatchServer(server, watches{m: m})
	var serving sync.WaitGroup
	serving.Go(func() {
		// A test may end before the member begins.
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve a member: %v", err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return m
}

// Changes are the requests for changes in their order, and the word snapshot for each request
// for a snapshot.
func (m *Member) Changes() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]any(nil), m.changes...)
}

func (m *Member) change(request any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes = append(m.changes, request)
	return m.Refusal
}

func (m *Member) hang(ctx context.Context) error {
	if !m.Hang {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// MemberList serves both kinds of reads.
func (m *Member) MemberList(ctx context.Context, r *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	switch err := m.hang(ctx); {
	case err != nil:
		return nil, err
	case !r.Linearizable:
		return &etcdserverpb.MemberListResponse{Members: m.Remembered}, nil
	case m.NoQuorum != nil:
		return nil, m.NoQuorum
	}
	return &etcdserverpb.MemberListResponse{Members: m.Agreed}, nil
}

// MemberAdd records the request. The added member has the ID 99.
func (m *Member) MemberAdd(_ context.Context, r *etcdserverpb.MemberAddRequest) (*etcdserverpb.MemberAddResponse, error) {
	if err := m.change(r); err != nil {
		return nil, err
	}
	return &etcdserverpb.MemberAddResponse{Member: &etcdserverpb.Member{ID: 99, PeerURLs: r.PeerURLs, IsLearner: r.IsLearner}}, nil
}

// MemberPromote records the request.
func (m *Member) MemberPromote(_ context.Context, r *etcdserverpb.MemberPromoteRequest) (*etcdserverpb.MemberPromoteResponse, error) {
	if err := m.change(r); err != nil {
		return nil, err
	}
	return &etcdserverpb.MemberPromoteResponse{}, nil
}

// MemberRemove records the request.
func (m *Member) MemberRemove(_ context.Context, r *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	if err := m.change(r); err != nil {
		return nil, err
	}
	return &etcdserverpb.MemberRemoveResponse{}, nil
}

// maintenance is apart because its method Status has the name of a field.
type maintenance struct {
	etcdserverpb.UnimplementedMaintenanceServer
	m *Member
}

func (s maintenance) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	if err := s.m.hang(ctx); err != nil {
		return nil, err
	}
	slow := time.NewTimer(s.m.Slow)
	defer slow.Stop()
	select {
	case <-slow.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.m.Status == nil {
		return &etcdserverpb.StatusResponse{}, nil
	}
	return s.m.Status, nil
}

func (s maintenance) MoveLeader(_ context.Context, r *etcdserverpb.MoveLeaderRequest) (*etcdserverpb.MoveLeaderResponse, error) {
	if err := s.m.change(r); err != nil {
		return nil, err
	}
	return &etcdserverpb.MoveLeaderResponse{}, nil
}

func (s maintenance) Alarm(_ context.Context, r *etcdserverpb.AlarmRequest) (*etcdserverpb.AlarmResponse, error) {
	if err := s.m.change(r); err != nil {
		return nil, err
	}
	return &etcdserverpb.AlarmResponse{}, nil
}
