// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func runningStatus() api.ClusterStatus {
	return api.ClusterStatus{
		Phase: api.ClusterPhaseRunning, Size: 1, CurrentVersion: "3.6.16", ReadyMembers: 1,
		Members: api.MembersStatus{Ready: []string{"a"}},
	}
}

func TestWriteStatusWritesOnceWhatIsNew(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	for range 3 {
		if err := c.writeStatus(t.Context(), runningStatus()); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.count("update", "etcdclusters"); n != 1 {
		t.Errorf("the same status was written %d times", n)
	}
	next := runningStatus()
	next.Size = 2
	if err := c.writeStatus(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if n := w.count("update", "etcdclusters"); n != 2 || w.count("get", "etcdclusters") != 0 {
		t.Errorf("%d writes, %d reads: the second write started from an old object", n, w.count("get", "etcdclusters"))
	}
	if got := w.etcdCluster().Status; !reflect.DeepEqual(got, next) {
		t.Errorf("status %+v", got)
	}
}

func TestWriteStatusFollowsAnEditOfTheSpec(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	w.edit(func(obj *api.EtcdCluster) { obj.Spec.Size, obj.Generation = 5, 2 })
	if err := c.writeStatus(t.Context(), runningStatus()); err != nil {
		t.Fatal(err)
	}
	now := w.etcdCluster()
	if now.Status.Phase != api.ClusterPhaseRunning || now.Spec.Size != 5 {
		t.Errorf("status %+v, size %d", now.Status, now.Spec.Size)
	}
	if c.obj.Spec.Size != 3 {
		t.Error("a spec was taken up that no pass has looked at")
	}
}

func TestWriteStatusGivesWayToAnotherInstance(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	theirs := runningStatus()
	w.edit(func(obj *api.EtcdCluster) { obj.Status = theirs })

	ours := api.ClusterStatus{Phase: api.ClusterPhaseCreating, Members: api.MembersStatus{Unready: []string{"another-seed"}}}
	err := c.writeStatus(t.Context(), ours)
	if !errors.Is(err, errSuperseded) {
		t.Errorf("error %v, want the step dropped", err)
	}
	if got := w.etcdCluster().Status; !reflect.DeepEqual(got, theirs) {
		t.Errorf("status %+v was written over that of a running cluster", got)
	}
	if !reflect.DeepEqual(c.status, theirs) {
		t.Errorf("the next pass starts from %+v", c.status)
	}
	// The next pass gets through, though its object is as old as before.
	next := runningStatus()
	next.Size = 2
	if err := c.writeStatus(t.Context(), next); err != nil {
		t.Error(err)
	}
}

func TestWriteStatusLeavesAnObjectThatWasMadeAnew(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	w.edit(func(obj *api.EtcdCluster) { obj.UID = "another" })
	if err := c.writeStatus(t.Context(), runningStatus()); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want that the cluster is gone", err)
	}
	if got := w.etcdCluster().Status; !reflect.DeepEqual(got, api.ClusterStatus{}) {
		t.Errorf("the new object got the status %+v of the old one", got)
	}
}

func TestWriteStatusOfAnObjectThatIsGone(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon))
	if err := w.cluster(testCluster()).writeStatus(t.Context(), runningStatus()); !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
}

// A failed write does not count as done: the next pass writes again.
func TestWriteStatusTriesAgainAfterAnError(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	down := true
	w.clusters.PrependReactor("update", "etcdclusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down, nil, apierrors.NewServiceUnavailable("down")
	})
	c := w.cluster(testCluster())
	if err := c.writeStatus(t.Context(), runningStatus()); err == nil || len(w.Events()) > 0 {
		t.Errorf("error %v, events %q: nothing has changed yet", err, w.Events())
	}
	down = false
	if err := c.writeStatus(t.Context(), runningStatus()); err != nil {
		t.Fatal(err)
	}
	if got := w.etcdCluster().Status.Phase; got != api.ClusterPhaseRunning {
		t.Errorf("phase %q", got)
	}
	if !w.Told("Bootstrapped") {
		t.Errorf("events %q", w.Events())
	}
}
