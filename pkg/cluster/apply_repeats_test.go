// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Something else writes the peer Service all the time, so that each of the operator's writes conflicts.
func TestAWriteThatEndsInVainIsNotRepeatedForever(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	svc := served(manifest.BuildPeerService(c.obj))
	svc.Spec.PublishNotReadyAddresses = false
	w.makeService(svc)
	w.watch()
	busy := true
	w.kube.PrependReactor("update", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return busy, nil, apierrors.NewConflict(corev1.Resource("services"), "c", errors.New("it has been modified"))
	})
	live := func(d time.Duration) {
		for end := clock.Now().Add(d); clock.Now().Before(end); {
			clock.Step(max(10*time.Millisecond, c.reconcile(t.Context())))
		}
	}
	const writes = 2 // of the Service in the cache, and of the one that the API server has
	live(time.Minute)
	if n := w.count("update", "services"); n < 2 || n > writes*mostRepeats {
		t.Errorf("%d attempts to correct the Service in a minute", n)
	}
	live(9 * time.Minute)
	if n := w.count("update", "services"); n > 10*writes*mostRepeats {
		t.Errorf("%d attempts to correct the Service in ten minutes", n)
	}
	if !strings.Contains(c.status.Reason, "correct peer service") {
		t.Errorf("status.reason is %q", c.status.Reason)
	}
	busy = false
	live(time.Minute)
	if len(w.storedPods()) != 1 {
		t.Errorf("the operator has not continued: %q", c.lastStep)
	}
}

// The watch of Services hangs. The operator creates the peer Service and does not see it: it tried to create
// it again and again, and did nothing else.
func TestAServiceThatTheCacheDoesNotShowHoldsNothingUp(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	for end := clock.Now().Add(time.Minute); clock.Now().Before(end); {
		clock.Step(max(10*time.Millisecond, c.reconcile(t.Context())))
	}
	if len(w.storedPods()) != 1 {
		t.Errorf("there is no pod: %q, %q", c.lastStep, c.status.Reason)
	}
	if n := w.count("create", "services"); n > 1+int(time.Minute/correctionPause) {
		t.Errorf("%d attempts to create the Service in a minute", n)
	}
}

// The watch of pods hangs, and the reason of a step changes meanwhile. Each reason had attempts of
// its own.
func TestAnotherReasonIsNoOtherWrite(t *testing.T) {
	r, attempts := repeats{}, 0
	for i := range 3 * mostRepeats {
		pod := manifest.MemberPod{Name: "a", Rejoins: i%2 == 0}
		for _, s := range []plan.Step{plan.CreatePods{Pods: []manifest.MemberPod{pod}}, plan.DeletePod{Name: "b", Why: fmt.Sprint("reason ", i)}} {
			if r.begin(s, noon) == nil {
				attempts++
			}
		}
	}
	if attempts != 2*mostRepeats {
		t.Errorf("%d attempts at two writes", attempts)
	}
	if err := r.begin(plan.CreatePods{Pods: []manifest.MemberPod{{Name: "c"}}}, noon); err != nil {
		t.Errorf("another pod: %v", err)
	}
}

// Attempts count by the clock, which may go back.
func TestAStepIsPausedByItsOwnAttemptsOnly(t *testing.T) {
	r := repeats{}
	now := noon
	for i := range mostRepeats {
		if err := r.begin(plan.CreateService{}, now); err != nil {
			t.Fatalf("attempt %d: %v", i+1, err)
		}
		now = now.Add(time.Second)
	}
	if r.begin(plan.CreateService{}, now) == nil {
		t.Error("one more attempt is not paused")
	}
	for _, other := range []plan.Step{plan.CreateService{Client: true}, plan.PromoteMember{Name: "a"}, plan.Wait{Why: "for a"}} {
		if err := r.begin(other, now); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
	if err := r.begin(plan.CreateService{}, noon.Add(repeatsWindow)); err != nil {
		t.Errorf("after the first attempt is a minute old: %v", err)
	}
	if err := r.begin(plan.CreateService{}, noon.Add(-time.Hour)); err != nil {
		t.Errorf("after the clock went back: %v", err)
	}
	if r.begin(plan.Idle{}, now.Add(time.Hour)) != nil || len(r) != 0 {
		t.Errorf("old attempts are kept: %v", r)
	}
}

// A webhook may take the finalizer of an import off again in the same moment.
func TestAFinalizerThatDoesNotStayIsNotWrittenForever(t *testing.T) {
	for _, s := range []plan.Step{plan.HoldImport{}, plan.ReleaseImport{}, plan.SetVolumeOwner{Name: "a"}} {
		r := repeats{}
		for range mostRepeats {
			if err := r.begin(s, noon); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
		if r.begin(s, noon) == nil {
			t.Errorf("one more attempt to %s is not paused", s)
		}
	}
}
