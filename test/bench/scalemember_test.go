//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// standIns answer for the members of all simulated clusters, with a listener on the address of
// each pod and one server for all. The address that a client has dialed selects the member.
// A cluster has a membership and a leader, and neither raft nor storage.
type standIns struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedClusterServer
	server *grpc.Server
	dialed *handedOver // connections that speak gRPC

	serving sync.WaitGroup

	mu       sync.Mutex
	clusters map[string]*standInCluster // by name
	doors    map[string]*door           // of the members that run, by IP
}

// A standInCluster changes at once while a quorum of its voters runs.
type standInCluster struct {
	id, term, index, leader uint64
	members                 []*standIn
}

// A standIn is a member. Without an address it does not run.
type standIn struct {
	*etcdserverpb.Member
	ip, version string
}

// startStandIns serves until the test ends, or until stopAll.
func startStandIns(t *testing.T) *standIns {
	t.Helper()
	s := &standIns{server: grpc.NewServer(), dialed: newHandedOver(), clusters: map[string]*standInCluster{}, doors: map[string]*door{}}
	etcdserverpb.RegisterKVServer(s.server, s)
	etcdserverpb.RegisterClusterServer(s.server, s)
	etcdserverpb.RegisterMaintenanceServer(s.server, maintenanceOf{s: s})
	s.serving.Go(func() {
		if err := s.server.Serve(s.dialed); err != nil {
			fmt.Printf("serve the simulated members: %v\n", err)
		}
	})
	t.Cleanup(s.stopAll)
	return s
}

// stopAll ends all members.
func (s *standIns) stopAll() {
	s.server.Stop()
	s.mu.Lock()
	for _, d := range s.doors {
		d.close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func clusterOf(pod *corev1.Pod) string { return pod.Labels[api.ClusterLabel] }

func peerURLOf(pod *corev1.Pod) string {
	cluster := &api.EtcdCluster{}
	cluster.Name, cluster.Namespace = clusterOf(pod), pod.Namespace
	return manifest.NamesOf(cluster).PeerURL(pod.Name)
}

// start lets the member of a pod answer on an address, for the first time or again.
func (s *standIns) start(ctx context.Context, pod *corev1.Pod, ip, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m := s.find(pod)
	if c == nil {
		id := idOf(string(pod.UID))
		m = &standIn{Member: &etcdserverpb.Member{ID: id, PeerURLs: []string{peerURLOf(pod)}}}
		c = &standInCluster{id: id + 1, index: 5000, members: []*standIn{m}}
		s.clusters[clusterOf(pod)] = c
	}
	if m == nil {
		return fmt.Errorf("start the member %s: nobody has added it", pod.Name)
	}
	door, err := s.open(ctx, ip)
	if err != nil {
		return err
	}
	door.cluster, door.member = c, m
	s.doors[ip] = door
	m.Name, m.ip, m.version = pod.Name, ip, version
	c.elect()
	return nil
}

// stop ends the member with an address.
func (s *standIns) stop(ip string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.doors[ip]; d != nil {
		d.close()
		d.member.ip = ""
		d.cluster.elect()
		delete(s.doors, ip)
	}
}

// expects reports whether a pod's member is in the membership, and votes whether it has a vote.
func (s *standIns) expects(pod *corev1.Pod) (expects, votes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, m := s.find(pod)
	return m != nil, m != nil && !m.IsLearner
}

// find returns the cluster and the member of a pod, or nil.
func (s *standIns) find(pod *corev1.Pod) (*standInCluster, *standIn) {
	c := s.clusters[clusterOf(pod)]
	if c == nil {
		return nil, nil
	}
	if i := slices.IndexFunc(c.members, func(m *standIn) bool { return m.PeerURLs[0] == peerURLOf(pod) }); i >= 0 {
		return c, c.members[i]
	}
	return c, nil
}

// at returns the cluster and the member at an address, or nil. A removed member is none.
func (s *standIns) at(ip string) (*standInCluster, *standIn) {
	d := s.doors[ip]
	if d == nil || !slices.Contains(d.cluster.members, d.member) {
		return nil, nil
	}
	return d.cluster, d.member
}

// elect replaces a leader that does not run, if there is a quorum.
func (c *standInCluster) elect() {
	var voters, up int
	var running uint64
	leads := false
	for _, m := range c.members {
		if m.IsLearner {
			continue
		}
		voters++
		if m.ip != "" {
			up++
			running = m.ID
			leads = leads || m.ID == c.leader
		}
	}
	switch {
	case up < voters/2+1:
		c.leader = 0
	case !leads:
		c.leader = running
		c.term++
	}
}

func idOf(text string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return hash.Sum64()
}
