// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestAnImportIsInTheStatusFromItsBeginning(t *testing.T) {
	o := &plan.Observation{Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Spec: api.ClusterSpec{Size: 3, Version: "3.6.16", ImportFrom: &api.ImportSource{Endpoints: []string{"http://old:2379"}}}}
	held := plan.Idle{Why: plan.Reason{Kind: plan.ImportHeld, Detail: "alarms: there are alarms"}}
	o.Import = plan.Import{Checked: true, Obstacles: []string{"alarms: there are alarms"}}
	o.Status = statusAfter(o, held, 1)
	if st := o.Status; st.Phase != api.ClusterPhaseCreating || st.Import == nil || st.Import.Phase != api.ImportChecking || len(st.Import.Obstacles) != 1 ||
		st.Reason != "the import waits: alarms: there are alarms" || st.Condition(api.ClusterConditionStalled).Reason != "ImportHeld" {
		t.Errorf("with an obstacle: %+v, %+v", st, st.Import)
	}

	o.Import = plan.Import{Checked: true, Held: true}
	begin := plan.BeginImport{ClusterID: 7, Members: []etcd.Member{{ID: 10, Name: "old"}}}
	o.Status = statusAfter(o, begin, 1)
	st := o.Status
	if st.Phase != api.ClusterPhaseRunning || st.Import.Phase != api.ImportJoining || st.Import.ClusterID != "7" || !st.Import.Has("a") || len(st.Import.Obstacles) != 0 {
		t.Errorf("at the begin: %+v, %+v", st, st.Import)
	}
	// It has no members yet, and that is no loss.
	if c := st.Condition(api.ClusterConditionAvailable); c.Status != corev1.ConditionFalse || c.Reason != "Importing" {
		t.Errorf("at the begin: %+v", c)
	}
	for _, step := range []plan.Step{plan.CommitImport{}, plan.FinishImport{}} {
		o.Status = statusAfter(o, step, 1)
	}
	if i := o.Status.Import; i.Phase != api.ImportCompleted || i.CommitDate != "2026-01-01T12:00:00Z" || i.CompletionDate != i.CommitDate {
		t.Errorf("at the end: %+v", i)
	}
}

// The status announces a write stop, and measures it from before its beginning.
func TestAWriteStopIsAnnouncedAndMeasured(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	fence := etcd.Alarm{MemberID: 99, Type: etcd.AlarmCorrupt}
	o := &plan.Observation{Now: noon, Spec: api.ClusterSpec{Size: 3, Version: "3.6.16", ImportFrom: &api.ImportSource{Method: api.ImportCopy, Endpoints: []string{"http://old:2379"}}}}
	o.Import.Fence = fence
	prepared := plan.Idle{Why: plan.Reason{Kind: plan.ImportPrepared, Detail: "say when"}}
	for _, c := range []struct {
		after time.Duration
		step  plan.Step
		phase api.ImportPhase
		want  api.ImportWriteStop
	}{
		{0, plan.BeginImport{ClusterID: 7, WriteStop: &api.ImportWriteStop{ExpectedSeconds: 9}}, api.ImportChecking, api.ImportWriteStop{ExpectedSeconds: 9}},
		{1, prepared, api.ImportPrepared, api.ImportWriteStop{ExpectedSeconds: 9}},
		{1, plan.Idle{Why: plan.Reason{Kind: plan.ImportHeld}}, api.ImportPrepared, api.ImportWriteStop{ExpectedSeconds: 9}},
		{2, plan.CommitImport{}, api.ImportCopying, api.ImportWriteStop{ExpectedSeconds: 9}},
		{3, plan.ChooseSeed{Name: "a"}, api.ImportCopying, api.ImportWriteStop{ExpectedSeconds: 9}},
		{10, plan.StopWrites{Fence: fence}, api.ImportCopying, api.ImportWriteStop{ExpectedSeconds: 9, BeginDate: "2026-01-01T12:00:10Z", AlarmID: "63"}},
		{11, plan.StopWrites{Fence: fence}, api.ImportCopying, api.ImportWriteStop{ExpectedSeconds: 9, BeginDate: "2026-01-01T12:00:10Z", AlarmID: "63"}},
		{12, plan.RecordStop{Revision: 20}, api.ImportCopying, api.ImportWriteStop{ExpectedSeconds: 9, BeginDate: "2026-01-01T12:00:10Z", AlarmID: "63", Revision: 20}},
		{15, plan.MarkRunning{}, api.ImportCopying, api.ImportWriteStop{ExpectedSeconds: 9, BeginDate: "2026-01-01T12:00:10Z", AlarmID: "63", Revision: 20}},
		{18, plan.FinishImport{}, api.ImportCompleted, api.ImportWriteStop{ExpectedSeconds: 9, BeginDate: "2026-01-01T12:00:10Z", AlarmID: "63", Revision: 20, Seconds: 8}},
	} {
		o.Now = noon.Add(c.after * time.Second)
		o.Status = statusAfter(o, c.step, 1)
		phase := api.ClusterPhaseCreating
		if c.after >= 15 {
			phase = api.ClusterPhaseRunning
		}
		st := o.Status
		if st.Phase != phase || st.Import.Phase != c.phase || *st.Import.WriteStop != c.want || st.Import.Method != api.ImportCopy || st.RestoredFrom != nil {
			t.Errorf("after %s the phase is %s, and the import %+v with %+v", c.step, st.Phase, st.Import, st.Import.WriteStop)
		}
		if idle, ok := c.step.(plan.Idle); ok && (st.Reason != idle.Why.String() || st.Condition(api.ClusterConditionAvailable).Reason != "Importing") {
			t.Errorf("the status is %+v", st)
		}
	}
	// A copy that refuses writes is not available, and no data is corrupt.
	o.Quorum = true
	o.Members = []plan.MemberState{{Member: etcd.Member{ID: 1, Name: "a"}, PodName: "a", Status: &etcd.Status{MemberID: 1, LeaderID: 1, Alarms: []etcd.Alarm{fence}}}}
	if status, reason, message := availability(o, api.ClusterPhaseRunning); status != corev1.ConditionFalse || reason != "Importing" || !strings.Contains(message, "refuses writes until") {
		t.Errorf("%s, %s, %s", status, reason, message)
	}
}

// Own members may have votes while the former members alone serve.
func TestAvailableSaysThatNoOwnMemberServes(t *testing.T) {
	o := &plan.Observation{Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Quorum: true, Spec: api.ClusterSpec{Size: 3, Version: "3.6.16", ImportFrom: &api.ImportSource{Endpoints: []string{"http://old:2379"}}}}
	o.Status = api.ClusterStatus{Phase: api.ClusterPhaseRunning, Import: &api.ImportStatus{ClusterID: "7", Members: []api.ImportedMember{{ID: "1", Name: "old"}}}}
	former := plan.MemberState{Member: etcd.Member{ID: 1, Name: "old"}, Status: &etcd.Status{MemberID: 1, LeaderID: 1}}
	for _, test := range []struct {
		own  []plan.MemberState
		want string
	}{
		{nil, "only members of the imported etcd have votes"},
		{[]plan.MemberState{{Member: etcd.Member{ID: 2, Learner: true}, PodName: "c-1"}}, "only members of the imported etcd have votes"},
		{[]plan.MemberState{{Member: etcd.Member{ID: 2}, PodName: "c-1"}}, "no own member with a vote is healthy"},
	} {
		o.Members = append([]plan.MemberState{former}, test.own...)
		status, reason, message := availability(o, api.ClusterPhaseRunning)
		if status != corev1.ConditionFalse || reason != "Importing" || !strings.HasPrefix(message, test.want) {
			t.Errorf("%d own members: %s, %s, %s", len(test.own), status, reason, message)
		}
	}
}

func TestAPanicBesideThePassesEndsNothing(t *testing.T) {
	var j job
	woken := make(chan struct{})
	var failure error
	j.start(t.Context(), time.Minute, func() { close(woken) }, func(context.Context) func() { panic("oh") }, func(err error) { failure = err })
	<-woken
	if j.running() || failure == nil || !strings.Contains(failure.Error(), "oh") {
		t.Errorf("it fails with %v", failure)
	}
	j.start(t.Context(), time.Minute, func() {}, func(ctx context.Context) func() { <-ctx.Done(); return func() { t.Error("it is applied") } }, nil)
	if !j.running() {
		t.Error("it does not run")
	}
	j.end()
	if j.running() {
		t.Error("it runs")
	}
}

// The first own member has joined and does not answer yet, so no version is on record.
func TestAnImportRefusesNoVersionBeforeItsFirstMemberAnswers(t *testing.T) {
	o := look(t, "cluster import=begun:held size=1\nmember old-0 former leader\nmember old-1 former\nmember old-2 former\nmember a learner down")
	o.Status.CurrentVersion = ""
	if !o.Outdated() {
		t.Fatal("the member has the version of the spec")
	}
	st := statusAfter(o, plan.Plan(o), 1)
	if c := st.Condition(api.ClusterConditionStalled); c.Status == corev1.ConditionTrue {
		t.Errorf("the condition Stalled is %+v", c)
	}
}

// The field came too late, or is gone before the import began.
func TestTheStatusKeepsNoImportThatNeverBegins(t *testing.T) {
	for name, c := range map[string]struct {
		world  string
		reason string
	}{
		"the field is gone":  {"cluster phase=Creating no-quorum", ""},
		"the field is later": {"cluster import=joins\nmember a leader\nmember b\nmember c", "spec.importFrom has no effect"},
	} {
		o := look(t, c.world)
		o.Status.Import = &api.ImportStatus{Phase: api.ImportChecking, Obstacles: []string{"alarms: there are alarms"}}
		if st := statusAfter(o, plan.Plan(o), 1); st.Import != nil || !strings.HasPrefix(st.Reason, c.reason) {
			t.Errorf("%s: the import is %+v, the reason %q", name, st.Import, st.Reason)
		}
	}
	o := look(t, "cluster import=begun:complete\nmember a leader\nmember b\nmember c")
	if st := statusAfter(o, plan.Plan(o), 1); st.Import == nil || st.Reason != "" {
		t.Errorf("after a complete import, the status is %+v, the reason %q", st.Import, st.Reason)
	}
}

// A learner gives no list of the members, and nobody asks the imported etcd.
func TestAnImportWithoutItsFieldIsNoLostQuorum(t *testing.T) {
	o := look(t, "cluster import=begun:held:unnamed no-quorum size=1\npod a running started")
	st := statusAfter(o, plan.Plan(o), 1)
	if c := st.Condition(api.ClusterConditionAvailable); c.Status != corev1.ConditionUnknown || c.Reason != "Importing" || !strings.Contains(c.Message, "spec.importFrom is gone") {
		t.Errorf("Available is %+v", c)
	}
	if c := st.Condition(api.ClusterConditionStalled); c.Reason != "ImportHeld" || !strings.Contains(st.Reason, "put it back") {
		t.Errorf("the reason is %q, Stalled %+v", st.Reason, c)
	}
}
