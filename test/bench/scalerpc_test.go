//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// maintenanceOf is apart because it shares names of methods with the others.
type maintenanceOf struct {
	etcdserverpb.UnimplementedMaintenanceServer
	s *standIns
}

// of returns the member whose address the client has dialed. The caller holds the lock.
func (s *standIns) of(ctx context.Context) (*standInCluster, *standIn, *etcdserverpb.ResponseHeader, error) {
	from, known := peer.FromContext(ctx)
	if !known {
		return nil, nil, nil, status.Error(codes.Internal, "no connection")
	}
	ip, _, err := net.SplitHostPort(from.LocalAddr.String())
	if err != nil {
		return nil, nil, nil, err
	}
	c, m := s.at(ip)
	if m == nil {
		return nil, nil, nil, status.Error(codes.NotFound, "no member has this address")
	}
	return c, m, c.header(m), nil
}

// voter is of for a request that needs a quorum, and that no learner answers.
func (s *standIns) voter(ctx context.Context) (*standInCluster, *etcdserverpb.ResponseHeader, error) {
	c, m, header, err := s.of(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case m.IsLearner:
		return nil, nil, rpctypes.ErrGRPCNotSupportedForLearner
	case c.leader == 0:
		return nil, nil, rpctypes.ErrGRPCNoLeader
	}
	return c, header, nil
}

func (c *standInCluster) header(m *standIn) *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{MemberId: m.ID, ClusterId: c.id, RaftTerm: c.term + 1, Revision: 33}
}

// list copies the membership: gRPC encodes an answer after the lock.
func (c *standInCluster) list() []*etcdserverpb.Member {
	var list []*etcdserverpb.Member
	for _, m := range c.members {
		list = append(list, &etcdserverpb.Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, IsLearner: m.IsLearner})
	}
	return list
}

func (s *standIns) MemberList(ctx context.Context, request *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _, header, err := s.of(ctx)
	if request.GetLinearizable() && err == nil {
		c, header, err = s.voter(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.MemberListResponse{Header: header, Members: c.list()}, nil
}

func (s *standIns) MemberAdd(ctx context.Context, request *etcdserverpb.MemberAddRequest) (*etcdserverpb.MemberAddResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, header, err := s.voter(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range c.members {
		if slices.Equal(m.PeerURLs, request.GetPeerURLs()) {
			return nil, rpctypes.ErrGRPCPeerURLExist
		}
	}
	c.index++
	m := &standIn{Member: &etcdserverpb.Member{
		ID: idOf(fmt.Sprint(request.GetPeerURLs(), c.index)), PeerURLs: request.GetPeerURLs(), IsLearner: request.GetIsLearner(),
	}}
	c.members = append(c.members, m)
	c.elect()
	list := c.list()
	return &etcdserverpb.MemberAddResponse{Header: header, Member: list[len(list)-1], Members: list}, nil
}

func (s *standIns) MemberRemove(ctx context.Context, request *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, header, err := s.voter(ctx)
	if err != nil {
		return nil, err
	}
	i := c.indexOf(request.GetID())
	if i < 0 {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	c.members = slices.Delete(c.members, i, i+1)
	c.index++
	c.elect()
	return &etcdserverpb.MemberRemoveResponse{Header: header, Members: c.list()}, nil
}

func (s *standIns) MemberPromote(ctx context.Context, request *etcdserverpb.MemberPromoteRequest) (*etcdserverpb.MemberPromoteResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, header, err := s.voter(ctx)
	if err != nil {
		return nil, err
	}
	switch i := c.indexOf(request.GetID()); {
	case i < 0:
		return nil, rpctypes.ErrGRPCMemberNotFound
	case !c.members[i].IsLearner:
		return nil, rpctypes.ErrGRPCMemberNotLearner
	case c.members[i].ip == "":
		return nil, rpctypes.ErrGRPCLearnerNotReady
	default:
		c.members[i].IsLearner = false
	}
	c.index++
	return &etcdserverpb.MemberPromoteResponse{Header: header, Members: c.list()}, nil
}

func (c *standInCluster) indexOf(id uint64) int {
	return slices.IndexFunc(c.members, func(m *standIn) bool { return m.ID == id })
}

func (s *standIns) Range(ctx context.Context, _ *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, header, err := s.voter(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.RangeResponse{Header: header}, nil
}

func (m maintenanceOf) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	c, member, header, err := m.s.of(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.StatusResponse{
		Header: header, Version: member.version, Leader: c.leader, IsLearner: member.IsLearner,
		RaftTerm: header.RaftTerm, RaftIndex: c.index, RaftAppliedIndex: c.index, DbSize: 20480, DbSizeInUse: 20480,
	}, nil
}

func (m maintenanceOf) MoveLeader(ctx context.Context, request *etcdserverpb.MoveLeaderRequest) (*etcdserverpb.MoveLeaderResponse, error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	c, member, header, err := m.s.of(ctx)
	switch {
	case err != nil:
		return nil, err
	case member.ID != c.leader:
		return nil, rpctypes.ErrGRPCNotLeader
	}
	if i := c.indexOf(request.GetTargetID()); i < 0 || c.members[i].IsLearner || c.members[i].ip == "" {
		return nil, rpctypes.ErrGRPCBadLeaderTransferee
	}
	c.leader = request.GetTargetID()
	c.term++
	return &etcdserverpb.MoveLeaderResponse{Header: header}, nil
}
