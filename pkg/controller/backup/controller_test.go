// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdfake "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// notes are what happens to the backups, in order.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *notes) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.lines, want) {
		t.Errorf("happened:\n%q\nexpected:\n%q", n.lines, want)
	}
	n.lines = nil
}

// stub is a backup that only takes notes.
type stub struct {
	*notes
	name string
}

func (s *stub) Run(ctx context.Context) {
	s.note("%s begins", s.name)
	<-ctx.Done()
	s.note("%s ends", s.name)
}

func (s *stub) Update(obj *api.EtcdBackup) {
	s.note("%s is being deleted: %t", s.name, obj.DeletionTimestamp != nil)
}

func (s *stub) Wake() {}

func object(name string, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.SchemeGroupVersion.String(), "kind": api.EtcdBackupResourceKind,
		"metadata": map[string]any{"namespace": "ns", "name": name, "uid": "uid of " + name},
		"spec":     map[string]any{"storageType": "S3"},
	}}
	for _, edit := range edits {
		edit(u)
	}
	return u
}

func deleting(u *unstructured.Unstructured) {
	now := metav1.Now()
	u.SetDeletionTimestamp(&now)
	u.SetFinalizers([]string{"theirs", api.BackupPeriodicFinalizer})
}

func unreadable(u *unstructured.Unstructured) {
	u.SetGeneration(7)
	_ = unstructured.SetNestedField(u.Object, "soon", "spec", "backupPolicy", "maxBackups")
}

func TestTheControllerFollowsItsEtcdBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := api.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		crds := crdfake.NewSimpleClientset()
		crds.PrependReactor("get", "customresourcedefinitions", func(a clienttesting.Action) (bool, runtime.Object, error) {
			obj, err := crds.Tracker().Get(a.GetResource(), "", a.(clienttesting.GetAction).GetName())
			if err != nil {
				return true, nil, err
			}
			c := obj.(*apiextensionsv1.CustomResourceDefinition).DeepCopy()
			c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
			return true, c, nil
		})
		dynamic := dynamicfake.NewSimpleDynamicClient(scheme, object("a"), object("bad", unreadable))
		logger := logrus.New()
		logger.SetOutput(io.Discard)
		c, err := New(Config{
			Namespace: "ns", CreateCRD: true, Version: "v1.0.0",
			Kube: fake.NewClientset(), Etcd: versionedfake.NewSimpleClientset(), Dynamic: dynamic, CRDs: crds,
			Recorder: record.NewFakeRecorder(10), Registry: prometheus.NewRegistry(), Logger: logrus.NewEntry(logger), Clock: clock.RealClock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		var n notes
		c.makeBackup = func(obj *api.EtcdBackup) (fleet.Runner[*api.EtcdBackup], error) { return &stub{&n, obj.Name}, nil }
		if err := c.Ready(); err == nil {
			t.Error("ready before Run")
		}
		fleettest.ExpectGauge(t, c.cfg.Registry, "etcd_backup_operator_backups", false)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		n.expect(t, "a begins")
		if err := c.Ready(); err != nil {
			t.Error(err)
		}
		fleettest.ExpectGauge(t, c.cfg.Registry, "etcd_backup_operator_backups", true)
		if _, err := crds.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), api.EtcdBackupCRDName, metav1.GetOptions{}); err != nil {
			t.Errorf("the CRD was not registered: %v", err)
		}
		backups := dynamic.Resource(api.SchemeGroupVersion.WithResource(api.EtcdBackupResourcePlural)).Namespace("ns")
		reported, err := backups.Get(t.Context(), "bad", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if reason, _, _ := unstructured.NestedString(reported.Object, "status", "Reason"); reason == "" {
			t.Error("the status does not report that the object can't be read")
		}
		// A reason without it would be v0.9.4's, which had given the backup up.
		if seen, _, _ := unstructured.NestedInt64(reported.Object, "status", "observedGeneration"); seen != 7 {
			t.Errorf("the status answers generation %d", seen)
		}
		// Who has a finalizer to take off learns of the deletion, and continues until
		// the object is gone.
		if _, err := backups.Update(t.Context(), object("a", deleting), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		n.expect(t, "a is being deleted: true")
		if err := backups.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		n.expect(t, "a ends")
		// So it is for one that was deleted while no operator was there.
		if _, err := backups.Create(t.Context(), object("b", deleting), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		n.expect(t, "b begins")
		// Nor does one that can't be read stay forever.
		if _, err := backups.Create(t.Context(), object("c", unreadable, deleting), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		released, err := backups.Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := released.GetFinalizers(); !slices.Equal(got, []string{"theirs"}) {
			t.Errorf("finalizers %v, want those of others", got)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		n.expect(t, "b ends")
		if err := c.Ready(); err == nil {
			t.Error("ready after Run")
		}
		fleettest.ExpectGauge(t, c.cfg.Registry, "etcd_backup_operator_backups", false)
	})
}

// A CustomResourceDefinition without the status subresource is replaced once a status cannot be written.
func TestTheDefinitionIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := api.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		crds := crdfake.NewSimpleClientset()
		crds.PrependReactor("get", "customresourcedefinitions", func(a clienttesting.Action) (bool, runtime.Object, error) {
			obj, err := crds.Tracker().Get(a.GetResource(), "", a.(clienttesting.GetAction).GetName())
			if err != nil {
				return true, nil, err
			}
			c := obj.(*apiextensionsv1.CustomResourceDefinition).DeepCopy()
			c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
			return true, c, nil
		})
		backup := &api.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid of a"},
			Spec:       api.BackupSpec{StorageType: api.BackupStorageTypeS3},
		}
		etcd := versionedfake.NewSimpleClientset(backup)
		etcd.PrependReactor("update", "etcdbackups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(api.Resource(api.EtcdBackupResourcePlural), "a")
		})
		logger := logrus.New()
		logger.SetOutput(io.Discard)
		c, err := New(Config{
			Namespace: "ns", CreateCRD: true, Version: "v1.0.0",
			Kube: fake.NewClientset(), Etcd: etcd, Dynamic: dynamicfake.NewSimpleDynamicClient(scheme), CRDs: crds,
			Recorder: record.NewFakeRecorder(10), Registry: prometheus.NewRegistry(), Logger: logrus.NewEntry(logger), Clock: clock.RealClock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		definitions := crds.ApiextensionsV1().CustomResourceDefinitions()
		crd, err := definitions.Get(t.Context(), api.EtcdBackupCRDName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		crd.Annotations, crd.Spec.Versions[0].Subresources = nil, nil
		if _, err := definitions.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		runner, err := c.makeBackup(backup)
		if err != nil {
			t.Fatal(err)
		}
		go runner.Run(ctx)
		time.Sleep(time.Minute)
		if crd, err = definitions.Get(t.Context(), api.EtcdBackupCRDName, metav1.GetOptions{}); err != nil || crd.Spec.Versions[0].Subresources == nil {
			t.Errorf("the CRD has the subresources %v: %v", crd.Spec.Versions[0].Subresources, err)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
