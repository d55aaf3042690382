// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func TestWhatRestsOnTheRecordWaitsForIt(t *testing.T) {
	looked := map[reflect.Type]bool{}
	for _, s := range []plan.Step{
		plan.ChooseSeed{Name: "a"}, plan.MarkRunning{}, plan.MarkFailed{Why: "all is lost"}, plan.CreateService{Client: true}, plan.RemoveMember{Name: "b"},
		plan.CreatePods{Pods: []manifest.MemberPod{{Name: "a", Seed: true}, {Name: "b"}}}, plan.BeginImport{ClusterID: 7}, plan.CommitImport{}, plan.FinishImport{},
		plan.StopWrites{}, plan.RecordStop{}, plan.ResumeWrites{},
		plan.WriteBridge{First: true},
		plan.ServeData{}, plan.StoreSurvivor{}, plan.RestoreChosen{}, plan.DeleteRestore{},
	} {
		looked[reflect.TypeOf(s)] = true
		if !restsOnRecord(s) {
			t.Errorf("%q is taken though its record could not be written", s)
		}
	}
	for _, s := range []plan.Step{
		plan.CreateService{}, plan.CreatePods{Pods: []manifest.MemberPod{{Name: "b"}}}, plan.DeletePod{Name: "b"}, plan.RemoveMember{Name: "b", Dead: true},
		plan.AddMember{Name: "b"}, plan.PromoteMember{Name: "b"}, plan.SetVersion{Pod: "b"},
		plan.UpdateService{Client: true}, plan.DeleteService{}, plan.CreateBudget{}, plan.UpdateBudget{}, plan.DeleteBudget{}, plan.RecyclePod{}, plan.SetMetadata{},
		plan.DeleteVolume{}, plan.ExpandVolume{}, plan.SetVolumeVersion{}, plan.SetVolumeOwner{}, plan.AdvanceLog{}, plan.MoveLeader{}, plan.LiftAlarms{}, plan.NoteMember{}, plan.EnableAuth{}, plan.DisableAuth{}, plan.ChangePassword{},
		plan.HoldImport{}, plan.ReleaseImport{}, plan.WriteBridge{},
		plan.Idle{}, plan.Wait{}, plan.WaitForPod{}, observing{}, // these change nothing
	} {
		looked[reflect.TypeOf(s)] = true
		if restsOnRecord(s) {
			t.Errorf("%q waits while the status can't be written", s)
		}
	}
	for _, s := range allSteps {
		if !looked[reflect.TypeOf(s)] {
			t.Errorf("does a %T rest on the record?", s)
		}
	}
}

// A member counts as dead if it does not answer at its address, which may be an old one by then.
func TestNobodyIsReplacedWhileTheAPIServerDoesNotAnswer(t *testing.T) {
	refused := fmt.Errorf("write: %w", apierrors.NewForbidden(api.Resource("etcdclusters"), "c", nil))
	overloaded := apierrors.NewServiceUnavailable("busy")
	const three = "cluster size=3\nmember a leader\nmember b down\nmember c"
	for name, tc := range map[string]struct {
		world string
		err   error
		want  bool
	}{
		"it refuses the status":               {three, refused, false},
		"it does not answer":                  {three, context.DeadlineExceeded, true},
		"it is overloaded":                    {three, overloaded, true},
		"the others are no quorum of the two": {"cluster size=2\nmember a leader\nmember b down", refused, true},
		"nothing is on record":                {"cluster size=2 no-record\nmember a leader\nmember b down", refused, false},
	} {
		o := look(t, tc.world)
		removed := plan.RemoveMember{ID: o.Members[1].ID, Name: "b", Dead: true}
		if got := replacesBlindly(o, removed, tc.err); got != tc.want {
			t.Errorf("%s: it waits: %t, want %t", name, got, tc.want)
		}
	}
}

// The seed must be on record before its pod exists.
func TestNoSeedIsMadeWhileTheStatusCanNotBeWritten(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(w.edit(creating("a")))
	w.makeService(served(manifest.BuildPeerService(c.obj)))
	w.watch()
	up := w.refuseStatus()
	if s, err := c.pass(t.Context()); !errors.Is(err, errStatusNotWritten) || !restsOnRecord(s) || len(w.storedPods()) > 0 {
		t.Errorf("%s: %v, %d pods", s, err, len(w.storedPods()))
	}
	up()
	if s, err := c.pass(t.Context()); err != nil || len(w.storedPods()) != 1 {
		t.Errorf("%s: %v, %d pods", s, err, len(w.storedPods()))
	}
}

// The record of an operator whose clock was ahead would keep an old revision for as long as the clocks
// differ. The automatic recovery would take it for one that is as new as its time.
func TestARecordFromTheFutureIsRenewedAtOnce(t *testing.T) {
	for _, test := range []struct {
		ahead   time.Duration
		moved   bool
		renewed bool
	}{
		{time.Hour, true, true},
		{time.Hour, false, true},
		{3 * time.Minute, true, true},
		{3 * time.Second, true, false}, // clocks differ by seconds, and each takeover must not cost a write
		{0, true, false},
	} {
		for _, automatic := range []bool{false, true} {
			old := &api.ClusterRecord{ClusterID: "7", Revision: 83, LastUpdateTime: noon.Add(test.ahead).Format(time.RFC3339)}
			next := &api.ClusterRecord{ClusterID: "7", Revision: 83, LastUpdateTime: noon.Format(time.RFC3339)}
			if test.moved {
				next.Revision = 9000
			}
			st := &api.ClusterStatus{Record: next}
			if keepRecord(st, old, noon, automatic); (st.Record == next) != test.renewed {
				t.Errorf("%+v, automatic %t: the record is %+v", test, automatic, st.Record)
			}
			if test.renewed {
				later := &api.ClusterStatus{Record: &api.ClusterRecord{ClusterID: "7", Revision: 9001, LastUpdateTime: noon.Add(time.Second).Format(time.RFC3339)}}
				if keepRecord(later, next, noon.Add(time.Second), automatic); later.Record != next {
					t.Errorf("%+v, automatic %t: the record is written again a second later", test, automatic)
				}
			}
		}
	}
}
