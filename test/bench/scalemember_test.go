//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// standIns answer for the only member of each simulated cluster, with a listener on the address
// of each pod and one server for all. The address that a client has dialed selects the member.
type standIns struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedClusterServer
	server *grpc.Server

	mu      sync.Mutex
	members map[string]*etcdserverpb.Member // by IP
}

// maintenanceOf is apart because it shares names of methods with the others.
type maintenanceOf struct {
	etcdserverpb.UnimplementedMaintenanceServer
	s *standIns
}

// startStandIns serves until the test ends.
func startStandIns(t *testing.T) *standIns {
	t.Helper()
	s := &standIns{members: map[string]*etcdserverpb.Member{}, server: grpc.NewServer()}
	etcdserverpb.RegisterKVServer(s.server, s)
	etcdserverpb.RegisterClusterServer(s.server, s)
	etcdserverpb.RegisterMaintenanceServer(s.server, maintenanceOf{s: s})
	t.Cleanup(s.server.Stop)
	return s
}

// serve lets the member of a pod answer on an address.
func (s *standIns) serve(ctx context.Context, serving *sync.WaitGroup, pod *corev1.Pod, ip string) error {
	cluster := &api.EtcdCluster{}
	cluster.Name, cluster.Namespace = pod.Labels[api.ClusterLabel], pod.Namespace
	id := fnv.New64a()
	id.Write([]byte(pod.UID))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(ip, "2379"))
	if err != nil {
		return fmt.Errorf("serve a member: %w; hack/bench -scale makes the addresses of %s local", err, podNetwork)
	}
	s.mu.Lock()
	s.members[ip] = &etcdserverpb.Member{ID: id.Sum64(), Name: pod.Name, PeerURLs: []string{manifest.NamesOf(cluster).PeerURL(pod.Name)}}
	s.mu.Unlock()
	serving.Go(func() {
		if err := s.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			fmt.Printf("serve the member %s: %v\n", pod.Name, err)
		}
	})
	return nil
}

// of returns the member whose address the client has dialed.
func (s *standIns) of(ctx context.Context) (*etcdserverpb.Member, *etcdserverpb.ResponseHeader, error) {
	from, known := peer.FromContext(ctx)
	if !known {
		return nil, nil, status.Error(codes.Internal, "no connection")
	}
	ip, _, err := net.SplitHostPort(from.LocalAddr.String())
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[ip]
	if m == nil {
		return nil, nil, status.Error(codes.NotFound, "no member has this address")
	}
	return m, &etcdserverpb.ResponseHeader{MemberId: m.ID, ClusterId: m.ID + 1, RaftTerm: 2, Revision: 33}, nil
}

func (s *standIns) MemberList(ctx context.Context, _ *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	m, header, err := s.of(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.MemberListResponse{Header: header, Members: []*etcdserverpb.Member{m}}, nil
}

func (s *standIns) Range(ctx context.Context, _ *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	_, header, err := s.of(ctx)
	return &etcdserverpb.RangeResponse{Header: header}, err
}

func (m maintenanceOf) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	member, header, err := m.s.of(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdserverpb.StatusResponse{
		Header: header, Version: etcd36, Leader: member.ID,
		RaftIndex: 5000, RaftAppliedIndex: 5000, DbSize: 20480, DbSizeInUse: 20480,
	}, nil
}
