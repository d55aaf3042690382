// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := api.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// yard is a collector with what it looks at.
type yard struct {
	*collector
	kube *kubefake.Clientset
	api  *fake.FakeDynamicClient
}

// newYard makes a collector whose informer knows the EtcdClusters known, while
// those in live exist.
func newYard(t *testing.T, known, live []*api.EtcdCluster, objects ...runtime.Object) *yard {
	t.Helper()
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	budgets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, b := range objects {
		store := pods
		switch b.(type) {
		case *corev1.Service:
			store = services
		case *policyv1.PodDisruptionBudget:
			store = budgets
		}
		if err := store.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{fleet.UIDIndex: fleet.IndexByUID})
	for _, c := range known {
		if err := clusters.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	var living []runtime.Object
	for _, c := range live {
		living = append(living, c)
	}
	y := &yard{kube: kubefake.NewClientset(objects...), api: fake.NewSimpleDynamicClient(scheme(t), living...)}
	y.collector = &collector{
		kube: y.kube, clusters: y.api, known: clusters,
		ownedObjects: ownedObjects{corelisters.NewPodLister(pods), corelisters.NewServiceLister(services), nil, policylisters.NewPodDisruptionBudgetLister(budgets)},
		log:          quiet(),
	}
	return y
}

// deleted returns what was deleted, as kind/name.
func (y *yard) deleted(t *testing.T) (names []string) {
	t.Helper()
	for _, a := range y.kube.Actions() {
		d, ok := a.(clienttesting.DeleteActionImpl)
		if !ok {
			t.Errorf("it called %s %s", a.GetVerb(), a.GetResource().Resource)
			continue
		}
		if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || !strings.HasSuffix(string(*p.UID), d.Name) {
			t.Errorf("%s was deleted whatever its UID", d.Name)
		}
		names = append(names, d.GetResource().Resource+"/"+d.Name)
	}
	return names
}

// serviceOf makes a Service with the metadata of a pod.
func serviceOf(pod *corev1.Pod) *corev1.Service { return &corev1.Service{ObjectMeta: pod.ObjectMeta} }

// budgetOf makes a PodDisruptionBudget with the metadata of a pod.
func budgetOf(pod *corev1.Pod) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: pod.ObjectMeta}
}

func TestOnlyOrphansAreDeleted(t *testing.T) {
	a, remade := fleettest.EtcdCluster("a", "1"), fleettest.EtcdCluster("b", "3")
	unowned := member("x-1", "x", "9")
	unowned.OwnerReferences = nil
	going := member("x-2", "x", "9")
	now := metav1.Now()
	going.DeletionTimestamp, going.Finalizers = &now, []string{"test/wait"}
	y := newYard(t, []*api.EtcdCluster{a, remade}, []*api.EtcdCluster{a, remade, fleettest.EtcdCluster("new", "5")},
		member("a-1", "a", "1"),
		member("b-1", "b", "2"), // of the former b
		member("b-2", "b", "3"),
		serviceOf(member("b", "b", "2")),
		serviceOf(member("b-client", "b", "3")),
		budgetOf(member("b", "b", "2")),
		budgetOf(member("a", "a", "1")),
		member("c-1", "c", "4"),     // its cluster is gone
		member("new-1", "new", "5"), // the informer does not know its cluster yet
		unowned, going,
	)
	y.collect(t.Context())
	if got, want := y.deleted(t), []string{"services/b", "poddisruptionbudgets/b", "pods/b-1", "pods/c-1"}; !slices.Equal(got, want) {
		t.Errorf("deleted %v, want %v", got, want)
	}
}

func TestNothingIsAskedWhereThereIsNoOrphan(t *testing.T) {
	a := fleettest.EtcdCluster("a", "1")
	y := newYard(t, []*api.EtcdCluster{a}, []*api.EtcdCluster{a}, member("a-1", "a", "1"))
	y.collect(t.Context())
	if n := len(y.kube.Actions()) + len(y.api.Actions()); n > 0 {
		t.Errorf("%d requests to the API server", n)
	}
}

func TestNothingIsDeletedOnAnAnswerThatSaysNothing(t *testing.T) {
	for name, err := range map[string]error{
		"no answer":                errors.New("connection refused"),
		"the resource is unknown":  apierrors.NewGenericServerResponse(404, "get", etcdClusters.GroupResource(), "c", "404 page not found", 0, true),
		"the operator has no role": apierrors.NewForbidden(etcdClusters.GroupResource(), "c", errors.New("no role")),
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, nil, nil, member("c-1", "c", "4"))
			asked := 0
			y.api.PrependReactor("get", "etcdclusters", func(clienttesting.Action) (bool, runtime.Object, error) { asked++; return true, nil, err })
			y.collect(t.Context())
			if got := y.deleted(t); len(got) > 0 {
				t.Errorf("deleted %v", got)
			}
			if asked != 1 {
				t.Errorf("the API server was asked for the cluster %d times", asked)
			}
		})
	}
}

func TestOrphansAreLookedForInEachInterval(t *testing.T) {
	for _, tc := range []struct {
		interval time.Duration
		want     int
	}{{10 * time.Minute, 6}, {0, 0}, {-time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(t, nil, []*api.EtcdCluster{fleettest.EtcdCluster("new", "5")}, member("new-1", "new", "5"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour+time.Minute)
			defer cancel()
			y.run(ctx, clock.RealClock{}, tc.interval)
			if got := len(y.api.Actions()); got != tc.want {
				t.Errorf("with an interval of %s it looked %d times in an hour, want %d", tc.interval, got, tc.want)
			}
		})
	}
}
