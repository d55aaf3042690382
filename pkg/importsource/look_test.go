// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package importsource

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// reader is a member that reads its database for a while.
type reader struct {
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedKVServer

	id      uint64
	learner bool
	leader  uint64 // that it knows
	members []*etcdserverpb.Member
	busy    *atomic.Int32
	most    *atomic.Int32
}

func (r *reader) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 7, MemberId: r.id, Revision: 12}
}

func (r *reader) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Header: r.header(), Version: "3.6.16", Leader: r.leader, IsLearner: r.learner}, nil
}

func (r *reader) MemberList(context.Context, *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	switch {
	case r.learner:
		return nil, rpctypes.ErrGRPCNotSupportedForLearner
	case r.leader == 0:
		return nil, rpctypes.ErrGRPCNoLeader
	}
	return &etcdserverpb.MemberListResponse{Header: r.header(), Members: r.members}, nil
}

func (r *reader) Range(_ context.Context, req *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if req.Revision == 0 {
		return &etcdserverpb.RangeResponse{Header: r.header()}, nil
	}
	raise(r.most, r.busy.Add(1))
	time.Sleep(20 * time.Millisecond)
	r.busy.Add(-1)
	return &etcdserverpb.RangeResponse{Header: r.header(), Count: 1, Kvs: []*mvccpb.KeyValue{{Key: []byte("a"), Value: []byte("b")}}}, nil
}

// raise makes n at least as large as to.
func raise(n *atomic.Int32, to int32) {
	for old := n.Load(); old < to && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}

// readers returns a source of three members, and the most of them that have read at once.
func readers(t *testing.T, change ...func(*reader)) (*Source, *atomic.Int32) {
	t.Helper()
	var busy, most atomic.Int32
	s := &Source{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	for i := range uint64(3) {
		r := &reader{id: i + 1, leader: 1, busy: &busy, most: &most}
		for _, change := range change {
			change(r)
		}
		for id := range uint64(3) {
			r.members = append(r.members, &etcdserverpb.Member{ID: id + 1, Name: "m"})
		}
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		etcdserverpb.RegisterMaintenanceServer(server, r)
		etcdserverpb.RegisterClusterServer(server, r)
		etcdserverpb.RegisterKVServer(server, r)
		serving.Go(func() { _ = server.Serve(listener) })
		t.Cleanup(server.Stop)
		s.Endpoints = append(s.Endpoints, etcd.Endpoint{URL: "http://" + listener.Addr().String()})
	}
	return s, &most
}

// The data of a member is read at the expense of its clients: those of a quorum must not wait at once.
func TestOneMemberAtATimeReadsItsDatabase(t *testing.T) {
	s, most := readers(t)
	f := s.Look(t.Context())
	for _, a := range f.Answers {
		if a.Err != nil || a.NoDigest != nil || a.Digest.Keys != 1 {
			t.Errorf("%+v", a)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d members have read at once", most.Load())
	}
}

func TestNoMemberReadsItsDatabaseInVain(t *testing.T) {
	s, most := readers(t)
	s.Worthwhile = func(f Facts) bool { return len(f.Members) == 2 }
	if f := s.Look(t.Context()); most.Load() != 0 || f.DataRevision != 0 {
		t.Errorf("%d members have read, for revision %d", most.Load(), f.DataRevision)
	}
	s.Worthwhile = func(f Facts) bool { return len(f.Members) == 3 }
	if f := s.Look(t.Context()); most.Load() == 0 || f.DataRevision != 12 {
		t.Errorf("%d members have read, for revision %d", most.Load(), f.DataRevision)
	}
}

// A learner lists no members, and a member that is cut off has no quorum. The others have one.
func TestAMemberThatCannotSpeakForAllIsNotAskedForThem(t *testing.T) {
	for name, change := range map[string]func(*reader){
		"a learner":     func(r *reader) { r.learner = r.id == 1 },
		"it is cut off": func(r *reader) { r.leader = r.id - 1 },
		"both":          func(r *reader) { r.learner, r.leader = r.id == 1, r.id/2 },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := readers(t, change)
			if f := s.Look(t.Context()); f.NotListed != nil || len(f.Members) != 3 {
				t.Errorf("%d members are listed, %v", len(f.Members), f.NotListed)
			}
		})
	}
	s, _ := readers(t, func(r *reader) { r.leader = 0 })
	if f := s.Look(t.Context()); f.NotListed == nil {
		t.Error("members are listed without a quorum")
	}
}
