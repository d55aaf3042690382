// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func TestAMemberThatConfirmsNoReadsIsStalled(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	refused := &etcdtest.Member{NoQuorum: rpctypes.ErrGRPCTimeout}
	answers := []answer{
		answered(t, c, "a", etcd.Status{MemberID: 1, LeaderID: 1}, &etcdtest.Member{}),
		answered(t, c, "b", etcd.Status{MemberID: 2, LeaderID: 2}, refused),
		answered(t, c, "c", etcd.Status{MemberID: 3, LeaderID: 1, Learner: true}, refused),
		answered(t, c, "d", etcd.Status{MemberID: 4}, refused),
		{pod: manifest.PodState{Name: "e"}},
	}
	findStalled(t.Context(), &plan.Observation{}, answers)
	for _, a := range answers {
		if a.stalled {
			t.Errorf("%s is asked without a quorum", a.pod.Name)
		}
	}
	findStalled(t.Context(), &plan.Observation{Quorum: true}, answers)
	for _, a := range answers {
		if want := a.pod.Name == "b"; a.stalled != want {
			t.Errorf("%s stalled: %t", a.pod.Name, a.stalled)
		}
	}
}

func TestAStalledMemberIsNotCalledHealthy(t *testing.T) {
	st := statusIn(t, "cluster size=3\nmember a stalled\nmember b leader\nmember c")
	for _, m := range st.MemberStatuses {
		if want := m.Name != "a"; m.Healthy != want || (m.Problem == "") != want || m.Leader != (m.Name == "b") {
			t.Errorf("%+v", m)
		}
	}
}

func TestAClusterThatHasLostDataIsNotAvailable(t *testing.T) {
	world := "cluster size=3 record=a:1,b:2,c:3 record-index=5000 index=4\nmember a leader seed\npod b started stopped\npod c started stopped"
	o := look(t, world)
	st := statusAfter(o, plan.Plan(o), 7)
	available := st.Condition(available)
	if available.Status != "False" || available.Reason != plan.ReasonForgotten || st.Reason != available.Message {
		t.Errorf("%+v, reason %q", available, st.Reason)
	}
	if st.Record == nil || len(st.Record.Members) != 3 || st.Record.RaftIndex != 5000 {
		t.Errorf("the record is now %+v", st.Record)
	}
	o.Status = st
	if again := statusAfter(o, plan.Plan(o), 7); again.Reason != st.Reason || !sameRecord(again.Record, st.Record) {
		t.Errorf("%q, %+v", again.Reason, again.Record)
	}
}

func TestAPanicWhileAMemberIsAskedEndsNothing(t *testing.T) {
	answers := []answer{{status: &etcd.Status{MemberID: 1, LeaderID: 1}}} // without a connection
	findStalled(t.Context(), &plan.Observation{Quorum: true}, answers)
	if !answers[0].stalled {
		t.Error("a member that could not be asked counts as one that commits")
	}
}

// Each pass asks each voter for a read.
func TestAnObservationShowsWhoDoesNotCommit(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	members := fakeMembers{}
	members.join(t, w, "a", "b", "c")
	members["b"].stalled = context.DeadlineExceeded
	o, err := w.cluster(testCluster()).observe(t.Context())
	if err != nil || !o.Quorum || len(o.Members) != 3 {
		t.Fatalf("quorum %t, members %+v, %v", o.Quorum, o.Members, err)
	}
	for _, m := range o.Members {
		if want := m.PodName != "b"; m.Healthy() != want || m.DownSince.IsZero() != want {
			t.Errorf("%s is healthy: %t, down since %s", m.PodName, m.Healthy(), m.DownSince)
		}
	}
}
