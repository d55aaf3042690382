// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// single is a cluster of one member, which is as specified at raft index 5000, and the
// operator that manages it.
type single struct {
	*Cluster

	world  *world
	clock  *clocktesting.FakeClock
	member *fakeMember
}

// singleThat returns a single. The test changes its API server first.
func singleThat(t *testing.T, change func(*world)) single {
	t.Helper()
	obj := testCluster()
	obj.Spec.Size, obj.Status = 1, runningStatus()
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, obj)
	change(w)
	members := fakeMembers{}
	members.join(t, w, "a")
	s := single{w.cluster(obj), w, clock, members["a"]}
	for range 10 {
		if next, err := s.pass(t.Context()); err != nil {
			t.Fatalf("%s: %v", next, err)
		}
		w.watch()
	}
	if s.lastStep != "idle: the cluster is as specified" {
		t.Fatalf("the last step is %s", s.lastStep)
	}
	return s
}

func newSingle(t *testing.T) single { return singleThat(t, func(*world) {}) }

// looks makes a pass in which the member reports these raft indexes, one after the
// other, and returns the reason of the condition Available.
func (s single) looks(t *testing.T, indexes ...uint64) string {
	t.Helper()
	status := s.member.says[0]
	s.member.says = nil
	for _, index := range indexes {
		status.RaftIndex, status.RaftApplied = index, index
		s.member.says = append(s.member.says, status)
	}
	if _, err := s.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.status.Condition(api.ClusterConditionAvailable).Reason
}

const reasonAvailable = "Cluster available"

// The operator writes the index every five minutes at most. Its later observations count as
// well.
func TestWhatIsNotWrittenYetIsRemembered(t *testing.T) {
	s := newSingle(t)
	s.clock.Step(time.Minute)
	if reason := s.looks(t, 6000); reason != reasonAvailable {
		t.Fatalf("Available is %q", reason)
	}
	if r := s.world.etcdCluster().Status.Record; r == nil || r.RaftIndex != 5000 {
		t.Fatalf("a minute later the record is %+v", r)
	}
	if reason := s.looks(t, 5500); reason != plan.ReasonWentBack {
		t.Errorf("the index goes back from 6000 to 5500, and Available is %q", reason)
	}
}

// A member reports its index before it answers for the quorum, and may lag at that time.
func TestAMemberThatLagsIsAskedOnceMore(t *testing.T) {
	s := newSingle(t)
	if reason := s.looks(t, 4990, 5001); reason != reasonAvailable {
		t.Errorf("it has caught up, and Available is %q", reason)
	}
	if reason := s.looks(t, 4990, 4991); reason != plan.ReasonWentBack {
		t.Errorf("it has not, and Available is %q", reason)
	}
}

// An operator that took over with an old list finds at its first write that another has recorded
// more. What it saw before that write must not replace the newer record.
func TestWhatWasSeenByAnOldListIsForgotten(t *testing.T) {
	s := newSingle(t)
	s.world.edit(func(obj *api.EtcdCluster) { obj.Status.Record.RaftIndex, obj.Status.Record.Revision = 9000, 900 })
	s.clock.Step(time.Hour)
	s.member.says[0].RaftIndex, s.member.says[0].RaftApplied = 6000, 6000
	if next, err := s.pass(t.Context()); !errors.Is(err, errSuperseded) {
		t.Fatalf("%s: %v", next, err)
	}
	s.take(s.world.etcdCluster())
	if reason := s.looks(t, 6000); reason != plan.ReasonWentBack {
		t.Errorf("the record has index 9000, etcd 6000, and Available is %q", reason)
	}
	if r := s.world.etcdCluster().Status.Record; r.RaftIndex != 9000 || r.Revision != 900 {
		t.Errorf("the record went back to %+v", r)
	}
}

func TestARecordThatAPersonHasEditedCounts(t *testing.T) {
	for name, edit := range map[string]func(*api.ClusterStatus){
		"it is lowered":    func(st *api.ClusterStatus) { st.Record.RaftIndex = 100 },
		"it is taken away": func(st *api.ClusterStatus) { st.Record = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSingle(t)
			s.take(s.world.edit(func(obj *api.EtcdCluster) { edit(&obj.Status) }))
			if reason := s.looks(t, 4000); reason != reasonAvailable {
				t.Errorf("Available is %q", reason)
			}
		})
	}
}

// An older CustomResourceDefinition drops the record. No person has edited it then.
func TestARecordThatTheAPIServerDropsIsRemembered(t *testing.T) {
	s := singleThat(t, func(w *world) {
		w.clusters.PrependReactor("update", "etcdclusters", func(a clienttesting.Action) (bool, runtime.Object, error) {
			a.(clienttesting.UpdateAction).GetObject().(*api.EtcdCluster).Status.Record = nil
			return false, nil, nil
		})
	})
	s.take(s.world.edit(func(*api.EtcdCluster) {}))
	if reason := s.looks(t, 4000); reason != plan.ReasonWentBack {
		t.Errorf("Available is %q", reason)
	}
}

// The mark is on record before the removal. The member that stays is no quorum of the two
// on record, so nothing else shows that the removal was meant.
func TestTheRecordMarksWhomTheOperatorRemoves(t *testing.T) {
	o := look(t, "cluster size=1\nmember a leader\nmember b")
	s := plan.Plan(o)
	if _, ok := s.(plan.RemoveMember); !ok {
		t.Fatalf("the step is %s", s)
	}
	record := statusAfter(o, s, 1).Record
	for _, m := range record.Members {
		if m.Removing != (m.Name == "b") {
			t.Errorf("%s is marked: %t", m.Name, m.Removing)
		}
	}
	o = look(t, "cluster size=1\nmember a leader\npod b started running")
	o.Record = record
	if s := plan.Plan(o); s.String() != "delete pod b: it is no member of the cluster" {
		t.Errorf("after the removal: %s", s)
	}
}

// The member that answers for the quorum may not report its index.
func TestTheRecordNeverGoesBack(t *testing.T) {
	o := look(t, "cluster record-index=5000 record-revision=900 record-id=cdf818194e3a8c32\nmember a leader\nmember b\nmember c")
	o.Seen = plan.Testimony{}
	if r := statusAfter(o, plan.Plan(o), 1).Record; r.RaftIndex != 5000 || r.Revision != 900 || r.ClusterID != "cdf818194e3a8c32" {
		t.Errorf("the record is %+v", r)
	}
	o.Seen = plan.Testimony{ClusterID: 0xcdf818194e3a8c32, Index: 6000, Revision: 950}
	if r := statusAfter(o, plan.Plan(o), 1).Record; r.RaftIndex != 6000 || r.Revision != 950 {
		t.Errorf("the record is %+v", r)
	}
}
