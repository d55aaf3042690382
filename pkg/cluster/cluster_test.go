// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// The tests of the loop run in bubbles of testing/synctest. Time passes only when all
// goroutines wait for it. A goroutine that outlives its test is an error.

// run starts a Cluster and returns what stops it and waits for its end.
func run(t *testing.T, c *Cluster) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	synctest.Wait()
	return func() {
		cancel()
		<-done
	}
}

// settle lets the caches follow until the cluster has nothing more to do.
func settle(w *world, c *Cluster) {
	for range 10 {
		w.watch()
		c.Update(w.etcdCluster())
		c.Wake()
		synctest.Wait()
		time.Sleep(longestWait) // of the bubble's time
		synctest.Wait()
	}
}

// pausedCluster is one with which nothing happens.
func pausedCluster() *api.EtcdCluster {
	obj := testCluster()
	obj.Spec.Paused = true
	return obj
}

func TestANewClusterIsBootstrapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		c := w.cluster(testCluster())
		defer run(t, c)()
		settle(w, c)

		if w.service("c").Spec.ClusterIP != corev1.ClusterIPNone {
			t.Error("the peer Service is missing")
		}
		st := w.etcdCluster().Status
		if st.Phase != api.ClusterPhaseCreating || len(st.Members.Unready) != 1 || st.ObservedGeneration != 1 {
			t.Fatalf("status %+v", st)
		}
		pods, seeds := w.storedPods(), 0
		for _, pod := range pods {
			if !strings.HasPrefix(pod.Name, "c-") || len(pod.Name) != len("c-")+10 {
				t.Errorf("pod name %s", pod.Name)
			}
			if manifest.PodStateOf(&pod).Seed {
				seeds++
				if pod.Name != st.Members.Unready[0] {
					t.Errorf("the seed %s is not the one on record, %s", pod.Name, st.Members.Unready[0])
				}
			}
		}
		if len(pods) != 3 || seeds != 1 {
			t.Errorf("%d pods, %d seeds", len(pods), seeds)
		}
		if n := w.count("create", "pods"); n != 3 {
			t.Errorf("%d pods were made", n)
		}
		if w.count("create", "services") > 1+4 {
			t.Errorf("%d attempts at Services", w.count("create", "services"))
		}
		if !w.Told("Bootstrapping the cluster with member " + st.Members.Unready[0]) {
			t.Errorf("events %q", w.Events())
		}
		for _, a := range w.clusters.Actions() {
			if a.GetVerb() == "update" && a.GetSubresource() != "status" {
				t.Errorf("the object itself was written: %v", a)
			}
		}
	})
}

// Another instance carries on from what the first has recorded, wherever that
// one was when it died.
func TestABootstrapIsCarriedOnByAnotherInstance(t *testing.T) {
	carriedOn(t, testCluster, func(t *testing.T, w *world, request int) {
		t.Helper()
		seeds := 0
		for _, pod := range w.storedPods() {
			if manifest.PodStateOf(&pod).Seed {
				seeds++
			}
		}
		if st := w.etcdCluster().Status; seeds != 1 || len(w.storedPods()) != 3 || st.Phase != api.ClusterPhaseCreating {
			t.Errorf("it died before request %d: %d seeds, %d pods, phase %q", request, seeds, len(w.storedPods()), st.Phase)
		}
	})
}

// carriedOn lets one instance die before each of its requests, and another carry on from there
// each time. Then it calls check, with the number of the request.
func carriedOn(t *testing.T, newCluster func() *api.EtcdCluster, check func(t *testing.T, w *world, request int)) {
	t.Helper()
	survived := false
	for died := 0; !survived; died++ { // before its nth request, whichever it makes
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, clock.RealClock{}, newCluster())
			ctx, cancel := context.WithCancel(t.Context())
			requests := 0
			dies := func(clienttesting.Action) (bool, runtime.Object, error) {
				if requests++; requests > died && ctx.Err() == nil {
					cancel()
				}
				return ctx.Err() != nil, nil, ctx.Err()
			}
			kubeLives, clustersLive := w.kube.ReactionChain, w.clusters.ReactionChain
			w.kube.PrependReactor("create", "*", dies)
			w.clusters.PrependReactor("update", "*", dies)
			first := w.cluster(newCluster())
			done := make(chan struct{})
			go func() {
				defer close(done)
				first.Run(ctx)
			}()
			for range 5 {
				synctest.Wait()
				time.Sleep(longestWait)
			}
			survived = ctx.Err() == nil
			cancel()
			<-done
			w.kube.ReactionChain, w.clusters.ReactionChain = kubeLives, clustersLive

			w.watch()
			second := w.cluster(w.etcdCluster())
			defer run(t, second)()
			settle(w, second)
			check(t, w, died+1)
		})
	}
}

func TestUpdateNeverBlocksAndTheNewestWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, pausedCluster())
		c := w.cluster(pausedCluster())
		for generation := range int64(10) {
			obj := pausedCluster()
			obj.Generation = generation + 2
			c.Update(obj)
			obj.Generation = 99 // the caller's copy is the caller's
		}
		defer run(t, c)()
		if got := w.etcdCluster().Status.ObservedGeneration; got != 11 {
			t.Errorf("the first pass looked at generation %d, want the newest", got)
		}
		if n := w.passes.Load(); n < 1 || n > 2 {
			t.Errorf("%d passes", n)
		}
	})
}

func TestAnUpdateOlderThanTheLastWriteIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, pausedCluster())
		c := w.cluster(pausedCluster())
		defer run(t, c)()
		c.Update(pausedCluster()) // the informer comes to what the pass started from
		synctest.Wait()
		if n := w.count("update", "etcdclusters"); n != 1 {
			t.Errorf("the status was written %d times", n)
		}
	})
}

// heldPods hold a pass when it has begun, as long as somebody wants that.
type heldPods struct {
	corelisters.PodLister
	hold *atomic.Bool
	gate chan struct{}
}

func (p heldPods) Pods(namespace string) corelisters.PodNamespaceLister {
	pods := p.PodLister.Pods(namespace)
	if p.hold.Load() {
		<-p.gate
	}
	return pods
}

func TestWakesCoalesceAndStartAPassAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, pausedCluster())
		var hold atomic.Bool
		gate := make(chan struct{})
		w.cfg.Pods = heldPods{w.cfg.Pods, &hold, gate}
		c := w.cluster(pausedCluster())
		defer run(t, c)()
		start := time.Now()
		hold.Store(true)
		c.Wake()
		synctest.Wait() // a pass is under way
		before := w.passes.Load()
		for range 1000 {
			c.Wake()
		}
		hold.Store(false)
		close(gate)
		synctest.Wait()
		if n := w.passes.Load() - before; n != 1 {
			t.Errorf("%d passes were made for all wakes during one", n)
		}
		if time.Since(start) > 0 {
			t.Error("a wake waited for the timer")
		}
	})
}

func TestWakesBeforeRunAreOnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, pausedCluster())
		c := w.cluster(pausedCluster())
		for range 1000 {
			c.Wake()
		}
		defer run(t, c)()
		if n := w.passes.Load(); n < 1 || n > 2 { // the wakes and the start
			t.Errorf("%d passes", n)
		}
	})
}

func TestTheTimerIsTheBackstop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, pausedCluster())
		c := w.cluster(pausedCluster())
		defer run(t, c)()
		before, requests := w.passes.Load(), len(w.kube.Actions())+len(w.clusters.Actions())
		time.Sleep(10*Period + Period/2)
		synctest.Wait()
		if n := w.passes.Load() - before; n != 10 {
			t.Errorf("%d passes in 10 periods", n)
		}
		if n := len(w.kube.Actions()) + len(w.clusters.Actions()) - requests; n != 0 {
			t.Errorf("an idle cluster sent %d requests to the API server", n)
		}
	})
}

func TestFrequentUpdatesDoNotStarveThePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		c := w.cluster(testCluster())
		defer run(t, c)()
		// Events come more often than any wait would end.
		for i := range 100 {
			w.watch()
			c.Update(w.edit(func(obj *api.EtcdCluster) { obj.Generation = int64(i + 2) }))
			c.Wake()
			time.Sleep(shortestWait / 4)
			synctest.Wait()
		}
		if st := w.etcdCluster().Status; st.ObservedGeneration != 101 || len(w.storedPods()) != 3 {
			t.Errorf("generation %d was seen of 101, %d pods were made", st.ObservedGeneration, len(w.storedPods()))
		}
	})
}

func TestErrorsBackOffUpToThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		var attempts []time.Time
		var up atomic.Bool
		w.kube.PrependReactor("create", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			if up.Load() {
				return false, nil, nil
			}
			attempts = append(attempts, time.Now())
			return true, nil, apierrors.NewInternalError(context.DeadlineExceeded)
		})
		c := w.cluster(testCluster())
		defer run(t, c)()
		time.Sleep(time.Minute)
		synctest.Wait()
		var waits []time.Duration
		for i := range attempts[1:] {
			waits = append(waits, attempts[i+1].Sub(attempts[i]))
		}
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, Period, Period}
		if len(waits) < len(want) || !reflect.DeepEqual(waits[:len(want)], want) {
			t.Errorf("it waited %v, want %v", waits, want)
		}
		if !w.Told("Reconcile Failing") || len(w.Events()) != 1 {
			t.Errorf("events %q, want one that reports the failure", w.Events())
		}
		up.Store(true)
		time.Sleep(Period)
		settle(w, c)
		if len(w.storedPods()) != 3 {
			t.Errorf("%d pods after the API server came back", len(w.storedPods()))
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		c := w.cluster(testCluster())
		stop := run(t, c)
		stop()
		passes := w.passes.Load()
		c.Wake()
		c.Update(testCluster())
		c.Update(testCluster()) // also now it does not block
		time.Sleep(2 * Period)
		if n := w.passes.Load(); n != passes {
			t.Errorf("%d passes after the end", n-passes)
		}
	})
}

func TestRunEndsInTheMiddleOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		ctx, cancel := context.WithCancel(t.Context())
		var reached atomic.Bool
		w.kube.PrependReactor("create", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			reached.Store(true)
			<-ctx.Done()
			return true, nil, ctx.Err()
		})
		c := w.cluster(testCluster())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx)
		}()
		synctest.Wait()
		if !reached.Load() {
			t.Error("there is no request in whose middle it could end")
		}
		cancel()
		<-done
		if len(w.Events()) > 0 {
			t.Errorf("events %q: the end is not a failure", w.Events())
		}
	})
}

func TestCacheObjectsAreNeverWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		given := testCluster()
		given.Spec.Pod = &api.PodPolicy{Labels: map[string]api.LabelValue{"team": "storage"}}
		w.edit(func(obj *api.EtcdCluster) { obj.Spec.Pod = given.Spec.Pod.DeepCopy() })
		c := w.cluster(given)
		givenBefore := given.DeepCopy()
		defer run(t, c)()
		settle(w, c)

		// Now the seed runs on an address where nobody answers, one pod is stuck
		// and one is surplus.
		pods := w.storedPods()
		for i := range pods {
			p := &pods[i]
			p.ResourceVersion = w.nextVersion()
			kubelet(p, ended(0, ""), corev1.ContainerState{}, waiting("ImagePullBackOff", "no such image"), corev1.ContainerState{}, 0)
			if manifest.PodStateOf(p).Seed {
				kubelet(p, ended(0, ""), ended(1, "no DNS"), waiting("CrashLoopBackOff", ""), ended(1, "disk full"), 2)
			}
			if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, "ns"); err != nil {
				t.Fatal(err)
			}
		}
		w.watch()
		before := snapshot(w)
		update := w.edit(func(obj *api.EtcdCluster) { obj.Spec.Size, obj.Spec.Version, obj.Generation = 1, "3.5.35", 2 })
		updateBefore := update.DeepCopy()
		c.Update(update)
		c.Wake()
		time.Sleep(3 * Period)
		synctest.Wait()

		if w.count("delete", "pods") == 0 {
			t.Error("the passes had nothing to do: the test shows nothing")
		}
		if !reflect.DeepEqual(given, givenBefore) || !reflect.DeepEqual(update, updateBefore) {
			t.Error("an object that was handed over was written")
		}
		for i, obj := range append(w.pods.List(), w.services.List()...) {
			name := obj.(interface{ GetName() string }).GetName() //nolint:forcetypeassert // all objects have one
			if !reflect.DeepEqual(obj, before[name]) {
				t.Errorf("object %d of the cache, %s, was written", i, name)
			}
		}
	})
}

func snapshot(w *world) map[string]runtime.Object {
	copies := map[string]runtime.Object{}
	for _, obj := range append(w.pods.List(), w.services.List()...) {
		name := obj.(interface{ GetName() string }).GetName() //nolint:forcetypeassert // all objects have one
		copies[name] = obj.(runtime.Object).DeepCopyObject()  //nolint:forcetypeassert // it is one
	}
	return copies
}

func TestNewRefusesAnObjectWithoutAUID(t *testing.T) {
	w := newWorld(t, clock.RealClock{})
	obj := testCluster()
	obj.UID = ""
	if _, err := New(w.cfg, obj); err == nil || !strings.Contains(err.Error(), "has no UID") {
		t.Errorf("an object that no API server made: %v", err)
	}
}
