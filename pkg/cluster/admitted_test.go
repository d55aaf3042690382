//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubewait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	sigsjson "sigs.k8s.io/json"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The operator must be able to create the objects of every admitted spec. This test offers
// random specs to the API server, and the operator's objects for those that it admits. All are
// dry runs. To offer more specs, or others:
//
//	SPECS=5000 SEED=7 hack/e2e -as-is -run TestAdmittedSpecsCanBeMade
func TestAdmittedSpecsCanBeMade(t *testing.T) {
	count, seed := fromEnv(t, "SPECS", 300), fromEnv(t, "SEED", time.Now().UnixNano())
	t.Logf("SPECS=%d SEED=%d", count, seed)
	server := connectToServer(t)
	specs := newSpecs(t, uint64(seed))

	jobs := make(chan map[string]any)
	var admitted, refused atomic.Int64
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for spec := range jobs {
				if server.offer(t, spec) {
					admitted.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	for range count {
		jobs <- specs.next()
	}
	close(jobs)
	workers.Wait()

	t.Logf("%d specs were admitted, %d refused", admitted.Load(), refused.Load())
	if admitted.Load() < count/5 || refused.Load() < count/5 {
		t.Error("that is too one-sided to prove anything")
	}
}

func fromEnv(t *testing.T, name string, unset int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// server is the API server of the local Kubernetes, and a namespace there.
type server struct {
	kube      kubernetes.Interface
	clusters  dynamic.ResourceInterface
	namespace string
}

func connectToServer(t *testing.T) *server {
	t.Helper()
	kubeconfig, err := harness.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	crds, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "admitted-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kube.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s := &server{kube: kube, namespace: ns.Name,
		clusters: clusters.Resource(api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural)).Namespace(ns.Name)}
	s.serve(t, crds)
	return s
}

// serve sees to it that the API server has this schema.
func (s *server) serve(t *testing.T, crds apiextensions.Interface) {
	t.Helper()
	want, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	all := crds.ApiextensionsV1().CustomResourceDefinitions()
	live, err := all.Get(t.Context(), want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = all.Create(t.Context(), want, metav1.CreateOptions{})
	} else if err == nil {
		live.Spec.Versions = want.Spec.Versions
		_, err = all.Update(t.Context(), live, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	// If the API server refuses this spec, the newest rules are in force.
	stale := map[string]any{"size": int64(1), "pod": map[string]any{"extraArgs": []any{"--data-dir=/x"}}}
	err = kubewait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, err := s.create(t, stale)
		return apierrors.IsInvalid(err), nil
	})
	if err != nil {
		t.Fatalf("the schema is not in force: %v", err)
	}
}

func (s *server) create(t *testing.T, spec map[string]any) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.SchemeGroupVersion.String(), "kind": api.EtcdClusterResourceKind,
		"metadata": map[string]any{"name": "random"},
		"spec":     spec,
	}}
	return s.clusters.Create(t.Context(), obj, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// offer offers a spec and, if the API server admits it, the objects that the operator creates
// for it.
func (s *server) offer(t *testing.T, spec map[string]any) (admitted bool) {
	live, err := s.create(t, spec)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return false
	}
	text, jsonErr := json.Marshal(spec)
	if err != nil || jsonErr != nil {
		t.Errorf("%v (%v): %s", err, jsonErr, text)
		return false
	}
	stored, err := live.MarshalJSON()
	if err != nil {
		t.Error(err)
		return true
	}
	obj := &api.EtcdCluster{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(stored, obj); err != nil {
		t.Errorf("admitted, but the operator can't read it: %v: %s", err, text)
		return true
	}
	if errs := api.ValidateEtcdCluster(obj); len(errs) > 0 {
		t.Errorf("admitted, but the operator refuses it: %v: %s", errs.ToAggregate(), text)
		return true
	}
	objects, err := belongings(obj)
	if err != nil {
		t.Errorf("admitted, but nothing can be made of it: %v: %s", err, text)
		return true
	}
	for _, o := range objects {
		if err := s.dryRun(t.Context(), o); err != nil && !missing(err) {
			t.Errorf("admitted, but the API server does not take the %T: %v: %s", o, err, text)
		}
	}
	return true
}

// missing is the error for an object that a name refers to and that does not
// exist: no schema can know that.
func missing(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "no PriorityClass with name") ||
		strings.Contains(err.Error(), "error looking up service account"))
}

func (s *server) dryRun(ctx context.Context, o runtime.Object) (err error) {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	switch o := o.(type) {
	case *corev1.Pod:
		_, err = s.kube.CoreV1().Pods(s.namespace).Create(ctx, o, dry)
	case *corev1.Service:
		_, err = s.kube.CoreV1().Services(s.namespace).Create(ctx, o, dry)
	case *corev1.PersistentVolumeClaim:
		_, err = s.kube.CoreV1().PersistentVolumeClaims(s.namespace).Create(ctx, o, dry)
	case *policyv1.PodDisruptionBudget:
		_, err = s.kube.PolicyV1().PodDisruptionBudgets(s.namespace).Create(ctx, o, dry)
	default:
		err = fmt.Errorf("nobody knows how to create a %T", o)
	}
	return err
}
