// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// The operator created and deleted pods as fast as it could if its clock was minutes ahead of
// the API server's. A new pod counted as one that could not start in time.
func TestAPodIsAsOldAsTheOperatorHasSeenIt(t *testing.T) {
	for name, offset := range map[string]time.Duration{"ahead": -10 * time.Minute, "behind": 10 * time.Minute, "as the API server's": 0} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			w := newWorld(t, clock, testCluster())
			pod := memberPod(t, testCluster(), "a")
			made := w.makePod(pod)
			made.CreationTimestamp = metav1.NewTime(noon.Add(offset))
			deletion := metav1.NewTime(noon.Add(offset + 30*time.Second))
			made.DeletionTimestamp, made.DeletionGracePeriodSeconds, made.Finalizers = &deletion, new(int64(30)), []string{"x/y"}
			if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), made, "ns"); err != nil {
				t.Fatal(err)
			}
			w.watch()
			c := w.cluster(testCluster())
			for _, after := range []time.Duration{0, time.Minute} {
				clock.Step(after)
				o, err := c.observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				p := o.Pod("a")
				if age := o.Now.Sub(p.Created); age != after || !p.DeleteBy.Equal(noon.Add(30*time.Second+manifest.DeleteMargin)) {
					t.Errorf("after %s it is %s old, to be gone by %s", after, age, p.DeleteBy)
				}
			}
		})
	}
}

// After a break in readiness, the time begins again.
func TestAPodIsReadySinceItsLastBreak(t *testing.T) {
	s := newSightings()
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	for second, ready := range []bool{false, true, true, false, true, true} {
		p := manifest.PodState{UID: "a", Ready: ready}
		s.seeReady(&p, at(second))
		want := []time.Time{{}, at(1), at(1), {}, at(4), at(4)}[second]
		if !p.ReadySince.Equal(want) {
			t.Errorf("in second %d it is ready since %s, want %s", second, p.ReadySince, want)
		}
	}
	s.forget(func(types.UID) bool { return true })
	if len(s.ready) > 0 {
		t.Error("a pod that is gone is remembered")
	}
}

// A restart of its container, or a break in readiness, may be that of another etcd.
func TestTheTimeSinceWhichAnEtcdServes(t *testing.T) {
	s := newSightings()
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	for second, c := range []struct {
		ready    bool
		restarts int32
		before   bool // this second
	}{{false, 0, false}, {true, 0, false}, {true, 0, true}, {true, 1, false}, {true, 1, true}, {false, 1, false}, {true, 1, false}, {true, 1, true}} {
		p := manifest.PodState{UID: "a", Ready: c.ready, Restarts: c.restarts}
		s.seeServing(p, at(second))
		if got := s.servedBefore(p, at(second)); got != c.before {
			t.Errorf("in second %d it has served before: %t", second, got)
		}
	}
	p := manifest.PodState{UID: "a", Restarts: 1}
	if !s.servedBefore(p, at(9)) || s.servedBefore(manifest.PodState{UID: "a", Restarts: 2}, at(9)) {
		t.Error("it is not the etcd of the last sight")
	}
	if s.forget(func(types.UID) bool { return true }); s.servedBefore(p, at(9)) {
		t.Error("a pod that is gone is remembered")
	}
}

// The kubelet (1.36) reports a pod as started and ready after a restart in place, because it was so
// before, and then as starting.
func TestAPodHasStartedUpOnceTheStartupProbeOfItsContainerSucceeds(t *testing.T) {
	s := newSightings()
	for i, step := range []struct {
		container  string
		startingUp bool
		want       bool
	}{
		{"x", true, false}, {"x", false, true}, // its first start
		{"y", false, false}, {"y", true, false}, {"y", false, true},
		{"z", false, false}, // what the kubelet reports for the former container
	} {
		p := manifest.PodState{UID: "a", Container: step.container, StartingUp: step.startingUp}
		s.seeStartup(&p)
		if p.StartedUp != step.want {
			t.Errorf("step %d: started up %t, want %t", i, p.StartedUp, step.want)
		}
	}
	s.forget(func(types.UID) bool { return true })
	if len(s.startups) > 0 {
		t.Error("a pod that is gone is remembered")
	}
}

func TestAPanicWhileOneMemberIsAskedIsItsOwn(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	o := &plan.Observation{Names: manifest.NamesOf(c.obj)}
	broken := answer{pod: manifest.PodState{Name: "a"}, status: &etcd.Status{MemberID: 1, LeaderID: 1}} // without a connection
	if members, through := agreed(t.Context(), o, []answer{broken}); members != nil || through != nil {
		t.Errorf("members %v", members)
	}
}

func TestAPanicWhileAPodIsMadeIsAnError(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	w.kube.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { panic("of the test") })
	c := w.cluster(testCluster())
	c.status.Phase = api.ClusterPhaseRunning
	err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{{Name: "a", Version: "3.6.16"}, {Name: "b", Version: "3.6.16"}}})
	if err == nil || !strings.Contains(err.Error(), "of the test") {
		t.Errorf("the error is %v", err)
	}
}
