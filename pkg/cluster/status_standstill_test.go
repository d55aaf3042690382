// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// lookFor looks at a world again and again and returns the last reason of the status, and
// how often it changed.
func lookFor(t *testing.T, d time.Duration, world func(second int) string, failure error) (reason string, changes int) {
	t.Helper()
	var s standstill
	for second := range int(d/time.Second) + 1 {
		o := look(t, world(second))
		o.Now = o.Now.Add(time.Duration(second) * time.Second)
		next := plan.Plan(o)
		o.Standstill = s.look(o, next)
		s.ended(next, failure)
		if st := statusAfter(o, next, 1); st.Reason != reason {
			reason = st.Reason
			changes++
		}
	}
	return reason, changes
}

func always(world string) func(int) string { return func(int) string { return world } }

func TestWhatIsWaitedForStandsInTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		world string
		names []string
	}{
		"a member during an upgrade": {"cluster version=3.7.3\nmember a leader\nmember b version=3.7.3 down crashing\nmember c",
			[]string{"for b to be healthy", "CrashLoopBackOff", "kubectl describe pod"}},
		"a member that the operator can't reach": {"cluster version=3.7.3\nmember a leader\nmember b down ready\nmember c",
			[]string{"for b to be healthy", "NetworkPolicy"}},
		"a member that crashes on an edit": {"cluster template=new storage=1Gi\nmember a leader template=old\nmember b down=11m guarded crashing\nmember c template=old\nvolume a\nvolume b\nvolume c",
			[]string{"for b to be healthy", "CrashLoopBackOff", "take the edit back", "kubectl delete pvc b --wait=false"}},
		"a member that crashes on another image": {"cluster\nmember a leader otherrepo\nmember b down=11m noted previous=3.6.16 crashing\nmember c otherrepo",
			[]string{"for b to be healthy", "take the edit back", "if not, delete its pod"}},
		"a quorum": {"cluster no-quorum\nmember a\nmember b down\nmember c down", []string{"for a quorum", "b: "}},
		"a quorum whose data is gone": {"cluster no-quorum record=a:1,b:2,c:3\nmember a\nmember b down finished\nmember c gone",
			[]string{"for a quorum", "the data of b, c is gone", "EtcdRestore"}},
		"a pod that starts":  {"cluster\nmember a leader\nmember b\npod n pending stuck ic=a,b,n", []string{"the pod of n is starting", "no node"}},
		"orphans":            {"cluster phase= no-quorum strangers=3", []string{"--cascade=orphan", "kubectl delete pods"}},
		"a learner":          {"cluster\nmember a leader\nmember b\nmember n learner down", []string{"for n to join"}},
		"a Service's making": {"cluster no-peer-service", []string{"create peer service", "of the test"}},
	} {
		t.Run(name, func(t *testing.T) {
			failure := errors.New("of the test")
			if early, _ := lookFor(t, standstillAfter-time.Second, always(c.world), failure); early != "" {
				t.Errorf("before a minute is over it says %q", early)
			}
			reason, changes := lookFor(t, 4*standstillAfter, always(c.world), failure)
			for _, want := range c.names {
				if !strings.Contains(reason, want) {
					t.Errorf("the reason %q does not say %q", reason, want)
				}
			}
			if changes != 1 {
				t.Errorf("it was written %d times", changes)
			}
		})
	}
}

// A volume outlives its pod, and the data of a member that is down is where it was.
func TestDataThatIsThereIsNotCalledGone(t *testing.T) {
	for _, world := range []string{
		"cluster no-quorum storage=1Gi record=a:1,b:2\nmember a down\nmember b down\nvolume a\nvolume b",
		"cluster no-quorum record=a:1,b:2,c:3\nmember a\nmember b down\nmember c down crashing",
	} {
		if reason, _ := lookFor(t, 4*standstillAfter, always(world), nil); reason == "" || strings.Contains(reason, "is gone") {
			t.Errorf("%s: it says %q", world, reason)
		}
	}
}

// The operator has never had a pod of a member that somebody else runs.
func TestTheDataOfMembersThatSomebodyElseRunsIsNotCalledGone(t *testing.T) {
	const unasked, unanswered = "the operator did not create it and does not ask it", "it does not answer at an endpoint of spec.importFrom"
	for name, c := range map[string]struct {
		world    string
		imported []string // IDs
		known    []api.MemberStatus
		problem  string // of those whose pod is not here
	}{
		"an import, and only a learner answers": {
			"cluster import=begun:held no-quorum record=etcd-0:a0,c-1:a1,etcd-2:a2,c-new:a3\npod c-new running",
			[]string{"a0", "a1", "a2"},
			[]api.MemberStatus{{Name: "c-1", ID: "a1"}, {Name: "c-new", ID: "a3", Learner: true}, {Name: "etcd-0", ID: "a0"}, {Name: "etcd-2", ID: "a2"}},
			unanswered,
		},
		"an import, and a voter answers": {
			"cluster import=begun:held no-quorum record=old-0:1,old-1:2,old-2:3,c-new:4\nmember old-0 former=down\nmember old-1 former=down\nmember old-2 former=down\nmember c-new",
			nil, nil, unanswered,
		},
		"a member that somebody has added": {
			"cluster no-quorum record=c-a:a0,c-b:a1,etcd-0:a2\npod c-a running\npod c-b running",
			nil, []api.MemberStatus{{Name: "c-a", ID: "a0"}, {Name: "c-b", ID: "a1"}, {Name: "etcd-0", ID: "a2"}}, unasked,
		},
		"one that a survivor remembers": {
			"cluster no-quorum record=a:1,b:2,etcd-0:3\nmember a\nmember b down\nmember etcd-0 foreign", nil, nil, unasked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s standstill
			for second := range 121 {
				o := look(t, c.world)
				o.Now = o.Now.Add(time.Duration(second) * time.Second)
				o.Status.MemberStatuses = c.known
				for _, id := range c.imported {
					o.Status.Import.Members = append(o.Status.Import.Members, api.ImportedMember{ID: id})
				}
				next := plan.Plan(o)
				o.Standstill = s.look(o, next)
				st := statusAfter(o, next, 1)
				if strings.Contains(st.Reason, "is gone") || strings.Contains(st.Reason, "EtcdRestore") || second == 120 && !strings.Contains(st.Reason, c.problem) {
					t.Fatalf("after %d s it says %q", second, st.Reason)
				}
				if len(st.MemberStatuses) == 0 {
					t.Fatal("it names no members")
				}
				for _, m := range st.MemberStatuses {
					if there := o.Pod(m.Name) != nil; there == (m.Problem == c.problem) || strings.Contains(m.Problem, "is gone") {
						t.Fatalf("after %d s the problem of %s is %q", second, m.Name, m.Problem)
					}
				}
			}
		})
	}
}

// It still is of a member that the operator has made.
func TestTheDataOfAnOwnMemberIsCalledGoneInAnImport(t *testing.T) {
	o := look(t, "cluster import=begun:held:committed no-quorum record=old-0:1,c-a:2,c-b:3\nmember old-0 former=down\nmember c-a\nmember c-b gone")
	if got := o.LostData(); !slices.Equal(got, []string{"c-b"}) {
		t.Errorf("the data of %v is gone", got)
	}
	o = look(t, "cluster no-quorum record=c-a:a0,c-b:a1\npod c-a running")
	o.Status.MemberStatuses = []api.MemberStatus{{Name: "c-a", ID: "a0"}, {Name: "c-b", ID: "a1"}}
	if got, silent := o.LostData(), silentMembers(o); !slices.Equal(got, []string{"c-b"}) || silent[1].Problem != "its pod is gone, and its data with it" {
		t.Errorf("the data of %v is gone, and the members are %+v", got, silent)
	}
}

func TestNoStandstillIsToldOfWhereAllIsDone(t *testing.T) {
	for _, world := range []string{
		"cluster\nmember a leader\nmember b\nmember c",
		"cluster paused\nmember a leader",
		"cluster ending\nmember a leader",
	} {
		if reason, _ := lookFor(t, 10*standstillAfter, always(world), nil); reason != "" {
			t.Errorf("%s: it says %q", world, reason)
		}
	}
}

// Reasons that take turns are one standstill, and not a write each.
func TestAStandstillIsNotWrittenTooOften(t *testing.T) {
	turns := func(second int) string {
		return fmt.Sprintf("cluster version=3.7.3\nmember a leader\nmember b version=3.7.3 %s\nmember c", []string{"down", "notready"}[second%2])
	}
	reason, changes := lookFor(t, 10*standstillAfter, turns, nil)
	if reason == "" || changes > 30 {
		t.Errorf("it says %q after %d changes in ten minutes", reason, changes)
	}
}

// A step that fails again and again is one standstill. What is said of the members is as they
// are now.
func TestAStandstillNamesNoMemberThatIsHealthyAgain(t *testing.T) {
	world := func(second int) string {
		b := "down"
		if second > 150 {
			b = ""
		}
		return "cluster no-peer-service\nmember a leader\nmember b " + b + "\nmember c"
	}
	failure := errors.New("of the test")
	if reason, _ := lookFor(t, 2*time.Minute, world, failure); !strings.Contains(reason, "; b: ") {
		t.Fatalf("the reason %q does not name b", reason)
	}
	if reason, _ := lookFor(t, 4*time.Minute, world, failure); reason == "" || strings.Contains(reason, "; b: ") {
		t.Errorf("the reason is %q, while b is healthy", reason)
	}
}

func TestAStandstillEnds(t *testing.T) {
	o := look(t, "cluster version=3.7.3\nmember a leader\nmember b version=3.7.3 down\nmember c")
	var s standstill
	s.look(o, plan.Plan(o))
	o.Now = o.Now.Add(standstillAfter)
	if s.look(o, plan.Plan(o)) == "" {
		t.Error("it is not reported")
	}
	o = look(t, "cluster version=3.7.3\nmember a leader\nmember b version=3.7.3 runs=3.7.3\nmember c")
	if got := s.look(o, plan.Plan(o)); got != "" {
		t.Errorf("it continues: %q", got)
	}
}

// Each attempt to add a member gives it another name. They are one wait all the same, and one
// write of the status.
func TestAnotherNameForANewMemberIsTheSameStandstill(t *testing.T) {
	var s standstill
	o := look(t, "cluster size=4\nmember a leader\nmember b\nmember c down")
	failure := errors.New("etcdserver: unhealthy cluster")
	told := map[string]bool{}
	for second := range 180 {
		o.Now = o.Now.Add(time.Second)
		next := plan.AddMember{Name: fmt.Sprintf("n%d", second), Learner: true}
		told[s.look(o, next)] = true
		s.ended(next, failure)
	}
	delete(told, "")
	if len(told) != 1 {
		t.Fatalf("it reports %v", told)
	}
	for text := range told {
		if !strings.Contains(text, "add a learner: etcdserver: unhealthy cluster; c: ") {
			t.Errorf("it reports %q", text)
		}
	}
}
