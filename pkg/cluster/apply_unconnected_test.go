// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Seen after a power loss of all nodes: the leader held its peer for unconnected until the next
// restart, and refused each new member, although the two agreed on writes.
func TestChangesGoToAnotherVoterIfTheLeaderSeesNoPeers(t *testing.T) {
	for name, s := range map[string]plan.Step{
		"add":     plan.AddMember{Name: "d"},
		"promote": plan.PromoteMember{ID: 4, Name: "d"},
		"remove":  plan.RemoveMember{ID: 3, Name: "c", Why: plan.Reason{Detail: "the size is 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			w := newWorld(t, clock, testCluster())
			c := w.cluster(testCluster())
			members := listed("a", "b", "c")
			leader := &etcdtest.Member{Agreed: members, Refusal: rpctypes.ErrGRPCUnhealthy}
			cutOff := &etcdtest.Member{Agreed: members}
			blind := &etcdtest.Member{Agreed: members, Refusal: rpctypes.ErrGRPCUnhealthy}
			follower := &etcdtest.Member{Agreed: members}
			answers := []answer{
				answered(t, c, "a", etcd.Status{MemberID: 1, LeaderID: 1, RaftIndex: 9}, leader),
				answered(t, c, "b", etcd.Status{MemberID: 2, RaftIndex: 9}, cutOff),
				answered(t, c, "c", etcd.Status{MemberID: 3, LeaderID: 1, RaftIndex: 8}, blind),
				answered(t, c, "d", etcd.Status{MemberID: 4, LeaderID: 1, RaftIndex: 7}, follower),
			}
			attempt := func() error {
				c.list(t.Context(), &plan.Observation{Names: manifest.NamesOf(c.obj)}, answers)
				return c.apply(t.Context(), s)
			}
			for range 3 {
				if err := attempt(); !errors.Is(err, rpctypes.ErrUnhealthy) || len(follower.Changes()) > 0 {
					t.Fatalf("at once: error %v, changes of the follower %v", err, follower.Changes())
				}
				clock.Step(3 * time.Second)
			}
			clock.Step(time.Second)
			if err := attempt(); err != nil || len(follower.Changes()) != 1 {
				t.Errorf("later: error %v, changes of the follower %v", err, follower.Changes())
			}
			if len(cutOff.Changes()) > 0 {
				t.Error("a member without a leader was asked")
			}
			follower.Refusal = rpctypes.ErrGRPCMemberNotEnoughStarted
			if err := attempt(); !errors.Is(err, rpctypes.ErrMemberNotEnoughStarted) {
				t.Errorf("another refusal: %v", err)
			}
			clock.Step(2 * time.Minute)
			follower.Refusal = nil
			if err := attempt(); !errors.Is(err, rpctypes.ErrUnhealthy) || len(follower.Changes()) != 2 {
				t.Errorf("a new refusal: error %v, changes of the follower %v", err, follower.Changes())
			}
		})
	}
}
