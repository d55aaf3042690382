// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// onRecord is the world of a script, with the status written.
func onRecord(t *testing.T, world string) *plan.Observation {
	t.Helper()
	o := look(t, world)
	o.Status = statusAfter(o, plan.Plan(o), 1)
	return o
}

func TestEachMemberIsTold(t *testing.T) {
	o := look(t, `
cluster size=5
member c
member a leader
member d learner applied=4000
member b down crashing
member x foreign`)
	o.Members[0].Status.DBSize, o.Members[0].Status.DBInUse = 8<<20, 2<<20
	o.Members[0].Status.Alarms = []etcd.Alarm{{MemberID: 2, Type: etcd.AlarmNoSpace}}
	o.Members[0].Status.RaftIndex, o.Members[0].Status.RaftApplied = 5005, 5004
	o.Pod("b").Problem = "container etcd ended with exit code 1"
	want := []api.MemberStatus{
		{Name: "a", ID: "2", Healthy: true, Leader: true, Version: "3.6.16", RaftIndexLag: 5, Alarms: []string{"NOSPACE"}},
		{Name: "b", ID: "4", Problem: "container etcd ended with exit code 1"},
		{Name: "c", ID: "1", Healthy: true, Version: "3.6.16", DBSize: 8 << 20, DBSizeInUse: 2 << 20, RaftIndexLag: 1},
		{Name: "d", ID: "3", Healthy: true, Learner: true, Version: "3.6.16", RaftIndexLag: 1005},
		{Name: "x", ID: "5", Problem: "the operator did not create it and does not ask it"},
	}
	if got := statusAfter(o, plan.Plan(o), 1).MemberStatuses; !reflect.DeepEqual(got, want) {
		t.Errorf("members\n%+v, want\n%+v", got, want)
	}
}

func TestAMembersProblemSaysWhy(t *testing.T) {
	refused := fmt.Errorf("status of http://b: rpc error: code = Unavailable desc = dial tcp 10.0.0.1:2379: connect: connection refused")
	handshake := errors.New(`status of https://b: rpc error: code = Unavailable desc = connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-01T12:00:00Z is after 2025-01-01T12:00:00Z"`)
	for name, c := range map[string]struct {
		member string
		change func(*plan.MemberState)
		want   string
	}{
		"healthy":              {"b", nil, ""},
		"no leader":            {"b", func(m *plan.MemberState) { m.Status.LeaderID = 0 }, "knows no leader: it does not reach a majority of the members"},
		"pod gone":             {"b gone", nil, "its pod is gone, and its data with it"},
		"pod deleted":          {"b down deleting", nil, "its pod is being deleted"},
		"node dead":            {"b down overdue", nil, "its node does not answer, and its pod can't be deleted: the operator replaces it when that has lasted for 10m0s and the others are a quorum"},
		"pod kept":             {"b down overdue", func(m *plan.MemberState) { m.Pod.KeptBy = "example.com/audit" }, "its pod has ended, and the finalizer example.com/audit keeps it: find out why nobody removes this finalizer, or remove it by hand"},
		"image":                {"b down badimage", nil, "ImagePullBackOff"},
		"restarting":           {"b down stopped", nil, "etcd restarts"},
		"not started":          {"b unstarted", nil, "etcd has not started yet"},
		"serves no clients":    {"b down not-serving=2:80", nil, "has restarted, and serves no clients until it reaches a majority of the members"},
		"silent":               {"b down", func(m *plan.MemberState) { m.Err = context.DeadlineExceeded }, "runs, but does not answer"},
		"refuses connections":  {"b down", func(m *plan.MemberState) { m.Err = refused }, "runs, but does not answer"},
		"bad certificate":      {"b down", func(m *plan.MemberState) { m.Err = handshake }, "runs, but does not answer: the TLS handshake failed: tls: failed to verify certificate: x509: certificate has expired or is not yet valid (it is after 2025-01-01T12:00:00Z)"},
		"somebody else's etcd": {"b down", func(m *plan.MemberState) { m.Err = plan.ErrOtherMember }, "runs, but does not answer: another member answers at its address"},
	} {
		o := look(t, "cluster size=3\nmember a leader\nmember "+c.member+"\nmember c")
		if c.change != nil {
			c.change(&o.Members[1])
		}
		got := statusAfter(o, plan.Plan(o), 1).MemberStatuses[1]
		if got.Problem != c.want || got.Healthy != (c.want == "") {
			t.Errorf("%s: healthy %t, problem %q, want %q", name, got.Healthy, got.Problem, c.want)
		}
	}
}

func TestWithoutAQuorumNobodyIsHealthyOrLeads(t *testing.T) {
	lost := look(t, "cluster size=3 no-quorum\nmember a\nmember b gone\nmember c down crashing")
	lost.Members[0].Status.LeaderID = lost.Members[0].ID // it has not noticed yet
	lost.Members[0].Status.DBSize = 4096
	got := statusAfter(lost, plan.Plan(lost), 1).MemberStatuses
	for _, m := range got {
		if m.Healthy || m.Leader || m.Problem == "" {
			t.Errorf("%+v", m)
		}
	}
	if len(got) != 3 || got[0].Version != "3.6.16" || got[0].DBSize != 4096 {
		t.Errorf("what the survivor says of itself is lost: %+v", got)
	}
}

func TestWhenNobodyAnswersTheMembersOnRecordAreTold(t *testing.T) {
	o := onRecord(t, "cluster size=3\nmember a leader\nmember b\nmember c")
	silent := look(t, "cluster size=3 no-quorum\npod a started stopped\npod b running\npod c badimage")
	silent.Status = o.Status
	want := []api.MemberStatus{
		{Name: "a", ID: "1", Problem: "etcd restarts"},
		{Name: "b", ID: "2", Problem: "runs, but does not answer"},
		{Name: "c", ID: "3", Problem: "ImagePullBackOff"},
	}
	if got := statusAfter(silent, plan.Plan(silent), 1).MemberStatuses; !reflect.DeepEqual(got, want) {
		t.Errorf("members %+v, want %+v", got, want)
	}
	lost := look(t, "cluster size=3 no-quorum")
	lost.Status = o.Status
	if got := statusAfter(lost, plan.Plan(lost), 1); len(got.MemberStatuses) > 0 {
		t.Errorf("all is lost, and the status has %+v", got.MemberStatuses)
	}
}

func TestTheLeaderIsWhomMostFollow(t *testing.T) {
	o := look(t, "cluster size=3\nmember a leader\nmember b\nmember c")
	o.Members[0].Status.LeaderID = 1 // a was cut off and has not noticed yet
	o.Members[1].Status.LeaderID, o.Members[2].Status.LeaderID = 2, 2
	for _, m := range memberStatuses(o) {
		if m.Leader != (m.Name == "b") {
			t.Errorf("%+v", m)
		}
	}
	foreign := look(t, "cluster size=3\nmember a\nmember b\nmember x foreign")
	foreign.Members[0].Status.LeaderID, foreign.Members[1].Status.LeaderID = 3, 3
	if x := memberStatuses(foreign)[2]; !x.Leader || !x.Healthy {
		t.Errorf("the others follow it: %+v", x)
	}
}

// A loaded cluster's numbers change with each look. Written is what a person would
// call a change.
func TestNumbersAreWrittenWhenTheyHaveChangedByATenth(t *testing.T) {
	const mib = 1 << 20
	world := "cluster size=3\nmember a leader\nmember b\nmember c"
	for name, c := range map[string]struct {
		before, after etcd.Status
		written       bool
	}{
		"the same":                        {etcd.Status{DBSize: 100 * mib, RaftIndex: 10, RaftApplied: 10}, etcd.Status{DBSize: 100 * mib, RaftIndex: 90000, RaftApplied: 90000}, false},
		"a little larger":                 {etcd.Status{DBSize: 100 * mib}, etcd.Status{DBSize: 110*mib - 1}, false},
		"a tenth larger":                  {etcd.Status{DBSize: 100 * mib}, etcd.Status{DBSize: 110 * mib}, true},
		"a tenth smaller":                 {etcd.Status{DBSize: 100 * mib}, etcd.Status{DBSize: 90 * mib}, true},
		"twice nothing":                   {etcd.Status{DBSize: 20480}, etcd.Status{DBSize: 40960}, false},
		"the first mebibyte":              {etcd.Status{DBSize: 20480}, etcd.Status{DBSize: 20480 + mib}, true},
		"compacted, measured by the file": {etcd.Status{DBSize: 100 * mib, DBInUse: 50 * mib}, etcd.Status{DBSize: 100 * mib, DBInUse: 41 * mib}, false},
		"compacted by much":               {etcd.Status{DBSize: 100 * mib, DBInUse: 50 * mib}, etcd.Status{DBSize: 100 * mib, DBInUse: 40 * mib}, true},
		"a lag under load":                {etcd.Status{RaftIndex: 5000, RaftApplied: 5000}, etcd.Status{RaftIndex: 5999, RaftApplied: 5000}, false},
		"falling behind":                  {etcd.Status{RaftIndex: 5000, RaftApplied: 5000}, etcd.Status{RaftIndex: 6000, RaftApplied: 5000}, true},
		"behind as before":                {etcd.Status{RaftIndex: 50000, RaftApplied: 10000}, etcd.Status{RaftIndex: 60000, RaftApplied: 21000}, false},
		"caught up":                       {etcd.Status{RaftIndex: 50000, RaftApplied: 10000}, etcd.Status{RaftIndex: 60000, RaftApplied: 59000}, true},
	} {
		set := func(o *plan.Observation, s etcd.Status) {
			s.MemberID, s.LeaderID, s.Version = 3, 1, "3.6.16"
			o.Members[2].Status = &s
			// The others keep up with it.
			o.Members[0].Status.RaftIndex, o.Members[1].Status.RaftIndex = s.RaftIndex, s.RaftIndex
			o.Members[0].Status.RaftApplied, o.Members[1].Status.RaftApplied = s.RaftIndex, s.RaftIndex
		}
		before := look(t, world)
		set(before, c.before)
		old := statusAfter(before, plan.Idle{}, 1)
		after := look(t, world)
		set(after, c.after)
		after.Status = old
		if written := !reflect.DeepEqual(statusAfter(after, plan.Idle{}, 1), old); written != c.written {
			t.Errorf("%s: written %t, want %t", name, written, c.written)
		}
		if st := statusAfter(after, plan.Idle{}, 2); st.MemberStatuses[2].DBSize != c.after.DBSize || st.MemberStatuses[2].DBSizeInUse != c.after.DBInUse {
			t.Errorf("%s: the generation is written, and with it %+v instead of the newest numbers", name, st.MemberStatuses[2])
		}
	}
}

func TestAlarmsAreThoseOfTheMostAdvancedMember(t *testing.T) {
	o := look(t, "cluster size=3\nmember a leader applied=5000\nmember b applied=4000\nmember c down")
	o.Members[1].Status.Alarms = []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}} // lifted since
	if got := o.Alarms(); len(got) > 0 {
		t.Errorf("alarms %v", got)
	}
	o.Members[0].Status.Alarms = []etcd.Alarm{{MemberID: 3, Type: etcd.AlarmNoSpace}}
	if c := memberStatuses(o)[2]; !reflect.DeepEqual(c.Alarms, []string{"NOSPACE"}) {
		t.Errorf("the alarm of a member that is down is lost: %+v", c)
	}
}
