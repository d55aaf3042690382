// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	crdfake "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
	versionedfake "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
)

// world is a Controller with a fake API server.
type world struct {
	*fleettest.Diary
	t        *testing.T
	ctrl     *Controller
	kube     *fake.Clientset
	dynamic  *dynamicfake.FakeDynamicClient
	registry *prometheus.Registry
	events   *record.FakeRecorder
}

func newWorld(t *testing.T, edit func(*Config), objects ...runtime.Object) *world {
	t.Helper()
	crds := crdfake.NewSimpleClientset()
	establishing(crds)
	w := &world{
		Diary: fleettest.NewDiary(), t: t,
		kube:     fake.NewClientset(),
		dynamic:  dynamicfake.NewSimpleDynamicClient(scheme(t), objects...),
		registry: prometheus.NewRegistry(),
		events:   record.NewFakeRecorder(100),
	}
	cfg := Config{
		Namespace: "ns", CreateCRD: true, Version: "v1.0.0", GCInterval: time.Hour,
		Kube: w.kube, EtcdClusters: versionedfake.NewSimpleClientset(), Dynamic: w.dynamic, CRDs: crds,
		Recorder: w.events, Registry: w.registry, Logger: quiet(),
		Clock: clock.RealClock{}, Rand: rand.New(rand.NewPCG(1, 1)),
	}
	if edit != nil {
		edit(&cfg)
	}
	ctrl, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.ctrl = ctrl
	w.ctrl.makeCluster = func(_ ownedObjects, obj *api.EtcdCluster) (fleet.Runner[*api.EtcdCluster], error) {
		return w.Diary.New(obj)
	}
	return w
}

// run starts the Controller; the bubble of the test does not end well if anything
// that it started is left over after Run.
func (w *world) run() (end func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.ctrl.Run(ctx) }()
	synctest.Wait()
	return func() {
		w.t.Helper()
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) expect(want ...string) {
	w.t.Helper()
	w.Expect(w.t, want...)
}

func asUnstructured(t *testing.T, obj *api.EtcdCluster) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func TestTheControllerFollowsItsEtcdClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, fleettest.EtcdCluster("a", "1"))
		if err := w.ctrl.Ready(); err == nil {
			t.Error("ready before Run")
		}
		fleettest.ExpectGauge(t, w.registry, "etcd_operator_controller_clusters", false)
		end := w.run()
		w.expect("a 1 begins with size 3")
		if err := w.ctrl.Ready(); err != nil {
			t.Error(err)
		}
		fleettest.ExpectGauge(t, w.registry, "etcd_operator_controller_clusters", true)
		clusters := w.dynamic.Resource(etcdClusters).Namespace("ns")
		if _, err := clusters.Create(t.Context(), asUnstructured(t, fleettest.EtcdCluster("b", "2")), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("b 2 begins with size 3")
		if _, err := clusters.Update(t.Context(), asUnstructured(t, fleettest.EtcdCluster("a", "1", fleettest.Size(5))), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("a 1 gets size 5")
		if _, err := w.kube.CoreV1().Pods("ns").Create(t.Context(), member("b-1", "b", "2"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("b 2 wakes")
		if _, err := w.kube.CoreV1().Services("ns").Create(t.Context(), serviceOf(member("a", "a", "1")), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("a 1 wakes")
		if err := clusters.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("a 1 ends")
		end()
		w.expect("b 2 ends")
		if err := w.ctrl.Ready(); err == nil {
			t.Error("ready after Run")
		}
		fleettest.ExpectGauge(t, w.registry, "etcd_operator_controller_clusters", false)
	})
}

// Idle, the operator asks the API server for nothing: it has its watches.
func TestTheControllerDoesNotPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.GCInterval = 10 * time.Minute }, fleettest.EtcdCluster("a", "1"))
		end := w.run()
		if _, err := w.kube.CoreV1().Pods("ns").Create(t.Context(), member("a-1", "a", "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.kube.ClearActions()
		w.dynamic.ClearActions()
		time.Sleep(24 * time.Hour)
		for _, a := range append(w.kube.Actions(), w.dynamic.Actions()...) {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
		end()
	})
}

func TestTheControllerWatchesOnlyWhatBelongsToClusters(t *testing.T) {
	for namespace, edit := range map[string]func(*Config){
		"ns": nil,
		"":   func(c *Config) { c.ClusterWide = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, edit)
			end := w.run()
			did := map[string]bool{}
			for _, a := range append(w.kube.Actions(), w.dynamic.Actions()...) {
				did[a.GetVerb()+" "+a.GetResource().Resource] = true
				if a.GetNamespace() != namespace {
					t.Errorf("%s %s in namespace %q, want %q", a.GetVerb(), a.GetResource().Resource, a.GetNamespace(), namespace)
				}
				if l, ok := a.(clienttesting.ListAction); ok && a.GetResource() != etcdClusters {
					if got := l.GetListRestrictions().Labels.String(); got != "app=etcd" {
						t.Errorf("lists %s with labels %q", a.GetResource().Resource, got)
					}
				}
				if l, ok := a.(clienttesting.WatchAction); ok && a.GetResource() != etcdClusters {
					if got := l.GetWatchRestrictions().Labels.String(); got != "app=etcd" {
						t.Errorf("watches %s with labels %q", a.GetResource().Resource, got)
					}
				}
			}
			for _, resource := range []string{"etcdclusters", "pods", "services", "persistentvolumeclaims", "poddisruptionbudgets"} {
				for _, verb := range []string{"list", "watch"} {
					if !did[verb+" "+resource] {
						t.Errorf("namespace %q: it does not %s %s", namespace, verb, resource)
					}
				}
			}
			end()
		})
	}
}

// An object like this one could be stored with the CRD of v0.9.4, which had no
// schema. A typed client would fail on the whole list.
func TestAnUnreadableObjectHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := asUnstructured(t, fleettest.EtcdCluster("bad", "2"))
		if err := unstructured.SetNestedField(bad.Object, "three", "spec", "size"); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, nil, fleettest.EtcdCluster("a", "1"), bad)
		end := w.run()
		w.expect("a 1 begins with size 3")
		if err := w.ctrl.Ready(); err != nil {
			t.Error(err)
		}
		if e := <-w.events.Events; !strings.Contains(e, "Spec Not Readable") || !strings.Contains(e, "ns/bad") || !strings.Contains(e, "spec.size") {
			t.Errorf("event %q", e)
		}
		clusters := w.dynamic.Resource(etcdClusters).Namespace("ns")
		reported, err := clusters.Get(t.Context(), "bad", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if reason, _, err := unstructured.NestedString(reported.Object, "status", "reason"); err != nil || !strings.Contains(reason, "spec.size") {
			t.Errorf("status.reason %q, %v", reason, err)
		}
		synctest.Wait()
		if n := len(w.events.Events); n > 0 {
			t.Errorf("its own write of the status is reported in %d further events", n)
		}
		if _, err := clusters.Update(t.Context(), asUnstructured(t, fleettest.EtcdCluster("bad", "2")), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("bad 2 begins with size 3")
		if _, err := clusters.Update(t.Context(), bad, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect() // what could be read is still managed
		remade := bad.DeepCopy()
		remade.SetUID("3")
		if _, err := clusters.Update(t.Context(), remade, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expect("bad 2 ends")
		end()
		w.expect("a 1 ends")
	})
}

// Its finalizer alone has the operator take its members out of the etcd that it imports.
func TestADeletedImportStaysThoughItCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := func(name string, finalizers ...string) *unstructured.Unstructured {
			bad, now := asUnstructured(t, fleettest.EtcdCluster(name, types.UID(name))), metav1.Now()
			bad.SetDeletionTimestamp(&now)
			bad.SetFinalizers(finalizers)
			if err := unstructured.SetNestedField(bad.Object, "three", "spec", "size"); err != nil {
				t.Fatal(err)
			}
			return bad
		}
		w := newWorld(t, nil, object("a", "theirs", api.ImportFinalizer), object("b", "theirs"))
		end := w.run()
		w.expect()
		clusters := w.dynamic.Resource(etcdClusters).Namespace("ns")
		for name, want := range map[string]string{"a": "the members are on the list of the etcd", "b": ""} {
			live, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			reason, _, _ := unstructured.NestedString(live.Object, "status", "reason")
			if slices.Contains(live.GetFinalizers(), api.ImportFinalizer) != (name == "a") || !strings.Contains(reason, want) || want == "" && reason != "" {
				t.Errorf("%s: finalizers %q, reason %q", name, live.GetFinalizers(), reason)
			}
		}
		end()
	})
}

func TestOrphansOfDeletedClustersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		if _, err := w.kube.CoreV1().Pods("ns").Create(t.Context(), member("a-1", "a", "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		end := w.run()
		time.Sleep(time.Hour + time.Minute)
		pods, err := w.kube.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) > 0 {
			t.Error("the orphan is still there")
		}
		end()
	})
}

func TestRunEndsAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// before the CRD is there
		w := newWorld(t, func(c *Config) { c.CreateCRD = false })
		end := w.run()
		time.Sleep(time.Minute)
		if err := w.ctrl.Ready(); err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition") {
			t.Errorf("ready: %v", err)
		}
		end()

		// before the caches are synced
		w = newWorld(t, nil, fleettest.EtcdCluster("a", "1"))
		w.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, context.DeadlineExceeded
		})
		end = w.run()
		time.Sleep(time.Minute)
		if err := w.ctrl.Ready(); err == nil || !strings.Contains(err.Error(), "pods") {
			t.Errorf("ready: %v", err)
		}
		w.expect() // no cluster is looked at while its pods are unknown
		end()
	})
}

func TestNewRefusesAnIncompleteConfig(t *testing.T) {
	for want, cfg := range map[string]Config{
		"needs the namespace":                       {},
		"there is no chaos level 3: the highest is": {Namespace: "ns", ChaosLevel: 3},
	} {
		cfg.Registry, cfg.Logger, cfg.Clock = prometheus.NewRegistry(), quiet(), clock.RealClock{}
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	registry := prometheus.NewRegistry()
	for _, wantErr := range []bool{false, true} {
		_, err := New(Config{Namespace: "ns", Registry: registry, Logger: quiet(), Clock: clock.RealClock{}})
		if (err != nil) != wantErr {
			t.Errorf("metrics registered twice: %v", err)
		}
	}
}
