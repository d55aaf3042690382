// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/readiness/readinesstest"
)

// judged is what kstatus makes of the status of a verdict: the condition that is True, and
// its reason.
func judged(t *testing.T, o *observation, v verdict) string {
	t.Helper()
	r := &Restore{obj: o.obj}
	r.setReady(&v, o.now)
	if v.status.Phase == api.RestorePhaseNone {
		if len(v.status.Conditions) > 0 {
			t.Errorf("conditions %v of a restore that was deleted before the operator did anything", v.status.Conditions)
		}
		return ""
	}
	obj := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: v.status.ObservedGeneration}, Status: v.status}
	condition, reason, err := readinesstest.Judge(obj)
	if err != nil {
		t.Error(err)
	}
	return condition + " " + reason
}

func TestReadyReconcilingAndStalled(t *testing.T) {
	starting, growing := onRecord(api.RestorePhaseStarting), onRecord(api.RestorePhaseGrowing)
	made := func(phase api.ClusterPhase) scene {
		return func(o *observation) { there("new", phase)(o); annotated(o) }
	}
	tried := func(since time.Duration) scene {
		return func(o *observation) {
			o.obj.Status = api.RestoreStatus{Phase: "Retrying", ObservedGeneration: 1, StartDate: notice.Timestamp(testNow.Add(-since))}
		}
	}
	says := func(kind api.ClusterConditionType) scene {
		return func(o *observation) {
			o.cluster.status.Conditions = append(o.cluster.status.Conditions, api.ClusterCondition{Type: kind, Status: corev1.ConditionTrue})
		}
	}
	for name, tc := range map[string]struct {
		o    *observation
		want string
	}{
		"it looks for the backup":              {seen(), "Reconciling VerifyingBackup"},
		"it failed once":                       {seen(tried(time.Minute), read(errors.New("denied"))), "Reconciling Retrying"},
		"it fails for long":                    {seen(tried(10*time.Minute), read(errors.New("denied"))), "Stalled CannotBegin"},
		"the backup is damaged":                {seen(read(errUnfit)), "Stalled RestoreFailed"},
		"the spec is invalid":                  {seen(func(o *observation) { o.obj.Spec.EtcdCluster.Name = "another" }), "Stalled SpecRefused"},
		"there is no cluster":                  {seen(tried(time.Minute), gone), "Reconciling Retrying"},
		"there is no cluster for long":         {seen(tried(10*time.Minute), gone), "Stalled CannotBegin"},
		"the old cluster stops":                {seen(onRecord(api.RestorePhaseStopping)), "Reconciling StoppingCluster"},
		"somebody keeps the old cluster":       {seen(onRecord(api.RestorePhaseStopping), live(deleting), live(func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"theirs"}) })), "Stalled StoppingBlocked"},
		"the new cluster is created":           {seen(onRecord(api.RestorePhaseCreating), gone), "Reconciling CreatingCluster"},
		"the API server refuses it":            {seen(onRecord(api.RestorePhaseCreating), gone, func(o *observation) { o.unacceptable = true }), "Stalled CreatingBlocked"},
		"another one is in the way":            {seen(onRecord(api.RestorePhaseCreating), there("other", api.ClusterPhaseRunning)), "Stalled CreatingBlocked"},
		"the first member starts":              {seen(starting, made(api.ClusterPhaseCreating)), "Reconciling StartingFirstMember"},
		"the new cluster is paused":            {seen(starting, made(api.ClusterPhaseCreating), func(o *observation) { o.cluster.spec.Paused = true }), "Stalled StartingBlocked"},
		"no operator runs":                     {seen(starting, made(""), func(o *observation) { o.now = testNow.Add(untouched) }), "Stalled StartingBlocked"},
		"the new cluster is stalled":           {seen(starting, made(api.ClusterPhaseCreating), says(api.ClusterConditionStalled)), "Stalled StartingBlocked"},
		"the new cluster works on it":          {seen(starting, made(api.ClusterPhaseCreating), says(api.ClusterConditionReconciling)), "Reconciling StartingFirstMember"},
		"members join":                         {seen(growing, made(api.ClusterPhaseRunning), from, members(1)), "Reconciling AddingMembers"},
		"all is lost after the cluster served": {seen(growing, made(api.ClusterPhaseFailed), from, servedSince(repeatWindow)), "Stalled GrowingBlocked"},
		"an edit is refused during the restore": {seen(starting, made(api.ClusterPhaseCreating), edited, func(o *observation) {
			o.obj.Spec.EtcdCluster.Name = "another"
		}), "Stalled StartingBlocked"},
		"it has succeeded": {seen(growing, gone, marked, func(o *observation) { o.token = nil }), "Ready Restored"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judged(t, tc.o, plan(tc.o)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A CustomResourceDefinition of an older release drops the conditions. The operator must not
// write them again and again.
func TestConditionsThatTheAPIServerDropsAreWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(3)
		w.change(func() { w.add("etcdrestores", testRestore()) })
		writes := 0
		w.drops = "conditions"
		w.after = func(verb, resource, _ string, _ clienttesting.Action) error {
			if verb == "update" && resource == "etcdrestores" {
				writes++
			}
			return nil
		}
		defer w.run()()
		w.live(10 * time.Minute)
		before := writes
		if phase := w.restore().Status.Phase; phase != api.RestorePhaseSucceeded || before == 0 {
			t.Errorf("phase %s after %d writes", phase, before)
		}
		w.live(10 * time.Minute)
		if writes > before+1 {
			t.Errorf("%d writes of the status in ten minutes, of %s", writes-before, w.restore().Status.Phase)
		}
	})
}

func TestProgressIsNotWrittenForItsConditions(t *testing.T) {
	a := api.RestoreStatus{Phase: "Retrying", Reason: "a"}
	b := api.RestoreStatus{Phase: "Retrying", Reason: "b"}
	for _, st := range []*api.RestoreStatus{&a, &b} {
		v := verdict{status: *st}
		(&Restore{obj: &api.EtcdRestore{}}).setReady(&v, testNow)
		*st = v.status
	}
	if !strings.Contains(a.Conditions[0].Message, "a") || !onlyReason(&a, &b) {
		t.Errorf("a status differs by more than its reason: %v, %v", a.Conditions, b.Conditions)
	}
	b.Conditions[0].Status = metav1.ConditionTrue
	if onlyReason(&a, &b) {
		t.Error("a status with another condition is said to differ by its reason only")
	}
}
