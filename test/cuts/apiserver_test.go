//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster"
	versionedfake "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
)

// apiServer is made of fakes, with the optimistic locking that they lack.
type apiServer struct {
	kube    *fake.Clientset
	etcd    *versionedfake.Clientset
	version atomic.Int64
	writes  sync.Mutex // of EtcdClusters
	deliver atomic.Pointer[delivery]
}

// delivery is where news of the EtcdCluster go.
type delivery struct{ *cluster.Cluster }

func newAPIServer(t *testing.T, objects ...runtime.Object) *apiServer {
	t.Helper()
	// Without managed fields, as in pkg/cluster.
	s := &apiServer{kube: fake.NewSimpleClientset(), etcd: versionedfake.NewSimpleClientset()}
	s.version.Store(1000)
	for _, obj := range objects {
		if err := s.etcd.Tracker().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	s.kube.PrependReactor("create", "*", s.identify)
	s.etcd.PrependReactor("create", "*", s.identify)
	s.etcd.PrependReactor("update", "etcdclusters", func(a clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := s.update(a.(clienttesting.UpdateAction).GetObject().(*api.EtcdCluster).DeepCopy(), a.GetSubresource() == "status")
		return true, obj, err
	})
	return s
}

// identify gives a new object what an API server gives it.
func (s *apiServer) identify(action clienttesting.Action) (bool, runtime.Object, error) {
	obj, err := meta.Accessor(action.(clienttesting.CreateAction).GetObject())
	if err != nil {
		return true, nil, err
	}
	version := strconv.FormatInt(s.version.Add(1), 10)
	obj.SetResourceVersion(version)
	obj.SetUID(types.UID("uid-" + version))
	obj.SetCreationTimestamp(metav1.Now())
	return false, nil, nil
}

// update refuses an update of an older object. A write of the status changes nothing else, whatever the writer
// believes the rest to be.
func (s *apiServer) update(obj *api.EtcdCluster, status bool) (*api.EtcdCluster, error) {
	s.writes.Lock()
	defer s.writes.Unlock()
	current, err := s.etcd.Tracker().Get(clusters, obj.Namespace, obj.Name)
	if err != nil {
		return nil, err
	}
	if current.(*api.EtcdCluster).ResourceVersion != obj.ResourceVersion {
		return nil, apierrors.NewConflict(api.Resource("etcdclusters"), obj.Name, fmt.Errorf("the object has been modified"))
	}
	if status {
		next := current.(*api.EtcdCluster).DeepCopy()
		next.Status = obj.Status
		obj = next
	}
	obj.ResourceVersion = strconv.FormatInt(s.version.Add(1), 10)
	return obj, s.etcd.Tracker().Update(clusters, obj.DeepCopy(), obj.Namespace)
}

var clusters = api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural)

// cluster is the EtcdCluster as the API server has it.
func (s *apiServer) cluster(t *testing.T) *api.EtcdCluster {
	t.Helper()
	obj, err := s.etcd.Tracker().Get(clusters, namespace, clusterName)
	if err != nil {
		t.Error(err)
		return nil
	}
	return obj.(*api.EtcdCluster).DeepCopy()
}

// annotate sets an annotation of the EtcdCluster, as a person does.
func (s *apiServer) annotate(t *testing.T, name, value string) {
	t.Helper()
	for range 100 {
		obj := s.cluster(t)
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, name, value)
		_, err := s.update(obj, false)
		switch {
		case err == nil:
			return
		case !apierrors.IsConflict(err):
			t.Fatal(err)
		}
	}
	t.Fatal("somebody else always writes first")
}

func (s *apiServer) backups(t *testing.T) []api.EtcdBackup {
	t.Helper()
	list, err := s.etcd.EtcdV1beta2().EtcdBackups(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil // the test ends
	}
	return list.Items
}

// restore is the EtcdRestore; nil: there is none.
func (s *apiServer) restore(t *testing.T) *api.EtcdRestore {
	t.Helper()
	obj, err := s.etcd.EtcdV1beta2().EtcdRestores(namespace).Get(t.Context(), clusterName, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return obj
}

// watch brings the caches up to date.
func (o *operators) watch(t *testing.T, services, budgets cache.Indexer) {
	t.Helper()
	replace := func(into cache.Indexer, resource string, from func() (runtime.Object, error)) {
		list, err := from()
		if err != nil {
			t.Errorf("list %s: %v", resource, err)
			return
		}
		var all []any
		_ = meta.EachListItem(list, func(obj runtime.Object) error { // which fails only for what is no list
			all = append(all, obj.DeepCopyObject())
			return nil
		})
		if err := into.Replace(all, ""); err != nil {
			t.Error(err)
		}
	}
	tracker := o.kube.Tracker()
	core := corev1.SchemeGroupVersion
	replace(o.pods, "pods", func() (runtime.Object, error) {
		return tracker.List(core.WithResource("pods"), core.WithKind("Pod"), namespace)
	})
	replace(services, "services", func() (runtime.Object, error) {
		return tracker.List(core.WithResource("services"), core.WithKind("Service"), namespace)
	})
	policy := policyv1.SchemeGroupVersion
	replace(budgets, "poddisruptionbudgets", func() (runtime.Object, error) {
		return tracker.List(policy.WithResource("poddisruptionbudgets"), policy.WithKind("PodDisruptionBudget"), namespace)
	})
}

// logTo returns a log that is shown if the test fails.
func logTo(t *testing.T) *logrus.Entry {
	t.Helper()
	var text lockedBuffer
	logger := logrus.New()
	logger.SetOutput(&text)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of an operator:\n%s", text.String())
		}
	})
	return logrus.NewEntry(logger)
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}
