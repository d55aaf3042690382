// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	versionedfake "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	"github.com/etcd-operator/etcd-operator/pkg/notice/noticetest"
)

// world is an API server made of fakes, with the optimistic locking that they lack. It also
// holds an operator's caches, which see its pods and Services when the test says so.
type world struct {
	t        testing.TB
	kube     *fake.Clientset
	clusters *versionedfake.Clientset
	pods     cache.Indexer
	services cache.Indexer
	budgets  cache.Indexer
	volumes  cache.Indexer
	passes   atomic.Int64 // as often as a Cluster has listed its pods
	version  atomic.Int64 // last resourceVersion
	cfg      Config
	noticetest.Recorder
}

const testUID types.UID = "11111111-1111-1111-1111-111111111111"

// testCluster is an EtcdCluster as a user makes it.
func testCluster() *api.EtcdCluster {
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: testUID, Generation: 1, ResourceVersion: "1"},
		Spec:       api.ClusterSpec{Size: 3, Version: "3.6.16"},
	}
}

func newWorld(t testing.TB, clock clock.Clock, objects ...*api.EtcdCluster) *world {
	t.Helper()
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	maps.Copy(byNamespace, Indexers)
	w := &world{
		t:        t,
		kube:     fake.NewSimpleClientset(), // NewClientset keeps managed fields, which took half of the tests' time
		clusters: versionedfake.NewSimpleClientset(),
		pods:     cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		services: cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		budgets:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
		volumes:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace),
	}
	w.version.Store(1000)
	for _, obj := range objects {
		if err := w.clusters.Tracker().Add(obj.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	w.kube.PrependReactor("create", "*", w.identify)
	w.kube.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return onlyAsks(a), a.(clienttesting.CreateAction).GetObject(), nil
	})
	w.kube.PrependReactor("patch", "pods", w.checkUID)
	w.kube.PrependReactor("delete", "pods", w.checkVersion)
	w.clusters.PrependReactor("update", "etcdclusters", w.lock)

	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	w.cfg = Config{
		Kube:          w.kube,
		EtcdClusters:  w.clusters,
		Pods:          countedPods{PodLister(w.pods), &w.passes},
		Services:      ServiceLister(w.services),
		Budgets:       policylisters.NewPodDisruptionBudgetLister(w.budgets),
		Volumes:       VolumeLister(w.volumes),
		Recorder:      &w.Recorder,
		Logger:        logrus.NewEntry(logger),
		Metrics:       metrics,
		OperatorImage: "etcd-operator/etcd-operator:v1.0.0",
		Clock:         clock,
	}
	return w
}

func (w *world) cluster(obj *api.EtcdCluster) *Cluster {
	w.t.Helper()
	c, err := New(w.cfg, obj)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// countedPods counts the passes.
type countedPods struct {
	corelisters.PodLister
	passes *atomic.Int64
}

func (p countedPods) Pods(namespace string) corelisters.PodNamespaceLister {
	p.passes.Add(1)
	return p.PodLister.Pods(namespace)
}

func (w *world) nextVersion() string { return strconv.FormatInt(w.version.Add(1), 10) }

// identify gives a new object what an API server gives it.
func (w *world) identify(action clienttesting.Action) (bool, runtime.Object, error) {
	obj, err := meta.Accessor(action.(clienttesting.CreateAction).GetObject())
	if err != nil {
		return true, nil, err
	}
	version := w.nextVersion()
	obj.SetResourceVersion(version)
	obj.SetUID(types.UID("uid-" + version))
	obj.SetCreationTimestamp(metav1.Time{Time: w.cfg.Clock.Now()})
	return false, nil, nil
}

// onlyAsks reports whether a request to create something is a dry run.
func onlyAsks(action clienttesting.Action) bool {
	create, ok := action.(clienttesting.CreateActionImpl)
	return ok && len(create.CreateOptions.DryRun) > 0
}

// checkUID refuses a patch for an earlier object of the same name.
func (w *world) checkUID(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var asked struct{ Metadata struct{ UID types.UID } }
	if err := json.Unmarshal(patch.GetPatch(), &asked); err != nil {
		return true, nil, err
	}
	obj, err := w.kube.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	if pod := obj.(*corev1.Pod); asked.Metadata.UID != "" && asked.Metadata.UID != pod.UID {
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), pod.Name, fmt.Errorf("the UID is %s", pod.UID))
	}
	return false, nil, nil
}

// checkVersion refuses the deletion of a pod whose state has changed since the observation.
func (w *world) checkVersion(action clienttesting.Action) (bool, runtime.Object, error) {
	d := action.(clienttesting.DeleteActionImpl)
	obj, err := w.kube.Tracker().Get(d.GetResource(), d.GetNamespace(), d.GetName())
	if err != nil {
		return true, nil, err
	}
	if p := d.DeleteOptions.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != obj.(*corev1.Pod).ResourceVersion {
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), d.GetName(), errors.New("the pod has changed"))
	}
	return false, nil, nil
}

// lock refuses an update of an older object or of another.
func (w *world) lock(action clienttesting.Action) (bool, runtime.Object, error) {
	update := action.(clienttesting.UpdateAction)
	obj := update.GetObject().(*api.EtcdCluster)
	current, err := w.stored(obj.Namespace, obj.Name)
	if err != nil {
		return true, nil, err
	}
	if current.ResourceVersion != obj.ResourceVersion || current.UID != obj.UID {
		return true, nil, apierrors.NewConflict(api.Resource("etcdclusters"), obj.Name, fmt.Errorf("the object has been modified"))
	}
	obj.ResourceVersion = w.nextVersion()
	return false, nil, nil
}

func (w *world) stored(namespace, name string) (*api.EtcdCluster, error) {
	obj, err := w.clusters.Tracker().Get(api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural), namespace, name)
	if err != nil {
		return nil, err
	}
	return obj.(*api.EtcdCluster), nil //nolint:forcetypeassert // the resource says so
}

// etcdCluster is the object as the API server has it.
func (w *world) etcdCluster() *api.EtcdCluster {
	w.t.Helper()
	obj, err := w.stored("ns", "c")
	if err != nil {
		w.t.Fatal(err)
	}
	return obj.DeepCopy()
}

// edit changes the object in the API server, as another client does.
func (w *world) edit(change func(*api.EtcdCluster)) *api.EtcdCluster {
	w.t.Helper()
	obj := w.etcdCluster()
	change(obj)
	obj.ResourceVersion = w.nextVersion()
	if err := w.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural), obj, obj.Namespace); err != nil {
		w.t.Fatal(err)
	}
	return obj.DeepCopy()
}

// storedPods are the pods as the API server has them.
func (w *world) storedPods() []corev1.Pod {
	w.t.Helper()
	list, err := w.kube.CoreV1().Pods("ns").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *world) editPod(name string, change func(*corev1.Pod)) {
	w.t.Helper()
	pod, err := w.kube.CoreV1().Pods("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		change(pod)
		_, err = w.kube.CoreV1().Pods("ns").Update(w.t.Context(), pod, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.watch()
}

// watch brings the caches up to date.
func (w *world) watch() {
	w.t.Helper()
	services, err := w.kube.CoreV1().Services("ns").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var objects []any
	for _, s := range services.Items {
		objects = append(objects, s.DeepCopy())
	}
	if err := w.services.Replace(objects, ""); err != nil {
		w.t.Fatal(err)
	}
	budgets, err := w.kube.PolicyV1().PodDisruptionBudgets("ns").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	objects = nil
	for _, b := range budgets.Items {
		objects = append(objects, b.DeepCopy())
	}
	if err := w.budgets.Replace(objects, ""); err != nil {
		w.t.Fatal(err)
	}
	objects = nil
	for i, p := range w.storedPods() {
		if p.Status.PodIP == "" { // as a kubelet reports it
			p.Status.PodIP = fmt.Sprintf("10.0.0.%d", i+1)
			p.ResourceVersion = w.nextVersion()
			if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), &p, p.Namespace); err != nil {
				w.t.Fatal(err)
			}
		}
		objects = append(objects, p.DeepCopy())
	}
	if err := w.pods.Replace(objects, ""); err != nil {
		w.t.Fatal(err)
	}
}

// count returns the number of requests.
func (w *world) count(verb, resource string) int {
	n := 0
	for _, a := range append(w.kube.Actions(), w.clusters.Actions()...) {
		if a.GetVerb() == verb && a.GetResource().Resource == resource {
			n++
		}
	}
	return n
}

// noon is when tests without a clock of their own take place.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// refuseStatus makes the API server refuse writes of the status until it is up.
func (w *world) refuseStatus() (up func()) {
	var down atomic.Bool
	down.Store(true)
	w.clusters.PrependReactor("update", "etcdclusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down.Load(), nil, apierrors.NewServiceUnavailable("down")
	})
	return func() { down.Store(false) }
}
