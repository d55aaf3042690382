// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
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
	"k8s.io/client-go/dynamic"
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

// notes are what happens to the restores, in order.
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

// stub is a restore that only takes notes.
type stub struct {
	*notes
	name string
}

func (s *stub) Run(ctx context.Context) {
	s.note("%s begins", s.name)
	<-ctx.Done()
	s.note("%s ends", s.name)
}

func (s *stub) Update(obj *api.EtcdRestore) {
	s.note("%s is being deleted: %t", s.name, obj.DeletionTimestamp != nil)
}

func (s *stub) Wake() {}

// listener is one that nobody connects to.
type listener struct{ closed chan struct{} }

func (l listener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l listener) Close() error {
	close(l.closed)
	return nil
}

func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// service leads clients here.
type service struct{}

func (service) Run(ctx context.Context) { <-ctx.Done() }

func (service) Problem() error { return nil }

func object(name string, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.SchemeGroupVersion.String(), "kind": api.EtcdRestoreResourceKind,
		"metadata": map[string]any{"namespace": "ns", "name": name, "uid": "uid of " + name},
		"spec":     map[string]any{"backupStorageType": "S3"},
	}}
	for _, edit := range edits {
		edit(u)
	}
	return u
}

func deleting(u *unstructured.Unstructured) {
	now := metav1.Now()
	u.SetDeletionTimestamp(&now)
	u.SetFinalizers([]string{"theirs", api.RestoreFinalizer})
}

func unreadable(u *unstructured.Unstructured) {
	u.SetGeneration(7)
	_ = unstructured.SetNestedField(u.Object, "soon", "spec", "bumpRevision")
}

// newController returns a controller in a synctest bubble, with the objects in its namespace.
// newController makes restores that only take notes.
func newController(t *testing.T, n *notes, objects ...runtime.Object) (*Controller, *crdfake.Clientset, dynamic.ResourceInterface) {
	t.Helper()
	c, crds, restores := newControllerOf(t, versionedfake.NewSimpleClientset(), objects...)
	c.makeRestore = func(obj *api.EtcdRestore) (fleet.Runner[*api.EtcdRestore], error) { return &stub{n, obj.Name}, nil }
	return c, crds, restores
}

func newControllerOf(t *testing.T, etcd *versionedfake.Clientset, objects ...runtime.Object) (*Controller, *crdfake.Clientset, dynamic.ResourceInterface) {
	t.Helper()
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
	client := dynamicfake.NewSimpleDynamicClient(scheme, objects...)
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	c, err := New(Config{
		Namespace: "ns", CreateCRD: true, Version: "v1.0.0",
		Kube: fake.NewClientset(), Etcd: etcd, Dynamic: client, CRDs: crds,
		Recorder: record.NewFakeRecorder(10), Registry: prometheus.NewRegistry(), Logger: logrus.NewEntry(logger), Clock: clock.RealClock{},
		Service: service{},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.cfg.Listen = func(context.Context, string, string) (net.Listener, error) { return listener{make(chan struct{})}, nil }
	return c, crds, client.Resource(api.SchemeGroupVersion.WithResource(api.EtcdRestoreResourcePlural)).Namespace("ns")
}

func TestTheControllerFollowsItsEtcdRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		c, crds, restores := newController(t, &n, object("a"), object("bad", unreadable))
		if err := c.Ready(); err == nil {
			t.Error("ready before Run")
		}
		fleettest.ExpectGauge(t, c.cfg.Registry, "etcd_restore_operator_restores", false)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		n.expect(t, "a begins")
		if err := c.Ready(); err != nil {
			t.Error(err)
		}
		fleettest.ExpectGauge(t, c.cfg.Registry, "etcd_restore_operator_restores", true)
		if _, err := crds.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), api.EtcdRestoreCRDName, metav1.GetOptions{}); err != nil {
			t.Errorf("the CRD was not registered: %v", err)
		}
		reported, err := restores.Get(t.Context(), "bad", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if reason, _, _ := unstructured.NestedString(reported.Object, "status", "reason"); reason == "" {
			t.Error("the status does not report that the object can't be read")
		}
		// A reason without it would be v0.9.4's, which had given the restore up.
		if seen, _, _ := unstructured.NestedInt64(reported.Object, "status", "observedGeneration"); seen != 7 {
			t.Errorf("the status answers generation %d", seen)
		}
		// Who has a finalizer to take off learns of the deletion, and continues until
		// the object is gone.
		if _, err := restores.Update(t.Context(), object("a", deleting), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		n.expect(t, "a is being deleted: true")
		if err := restores.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		n.expect(t, "a ends")
		// So it is for one that was deleted while no operator was there.
		if _, err := restores.Create(t.Context(), object("b", deleting), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		n.expect(t, "b begins")
		// Nor does one that can't be read stay forever.
		if _, err := restores.Create(t.Context(), object("c", unreadable, deleting), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		released, err := restores.Get(t.Context(), "c", metav1.GetOptions{})
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
		fleettest.ExpectGauge(t, c.cfg.Registry, "etcd_restore_operator_restores", false)
	})
}

// begun is past the commit point: the old EtcdCluster may be gone, and the new one not made.
func begun(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedMap(u.Object, map[string]any{
		"phase": "Creating", "replacedUID": "old",
		"backup":  map[string]any{"key": "bucket/k", "size": int64(1), "sha256": "x", "generation": int64(1)},
		"cluster": map[string]any{"kind": "EtcdCluster"},
	}, "status")
}

func succeeded(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(u.Object, true, "status", "succeeded")
}

// Only its status holds the manifest of the EtcdCluster that it is to make.
func TestARestoreThatHasBegunStaysThoughItCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		edits       []func(*unstructured.Unstructured)
		stays       bool
		says, never string
	}{
		"it has begun":             {edits: []func(*unstructured.Unstructured){begun}, says: "edit it back, and do not delete it", never: "or delete it"},
		"deleted":                  {edits: []func(*unstructured.Unstructured){deleting}},
		"deleted, it has begun":    {edits: []func(*unstructured.Unstructured){begun, deleting}, stays: true, says: "edit it back", never: "delete it"},
		"deleted, it has ended":    {edits: []func(*unstructured.Unstructured){begun, succeeded, deleting}},
		"it has not begun":         {says: "edit the object or delete it"},
		"it has succeeded already": {edits: []func(*unstructured.Unstructured){begun, succeeded}, says: "edit the object or delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n notes
				c, _, restores := newController(t, &n, object("a", append([]func(*unstructured.Unstructured){unreadable}, tc.edits...)...))
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- c.Run(ctx) }()
				n.expect(t)
				live, err := restores.Get(t.Context(), "a", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := slices.Contains(live.GetFinalizers(), api.RestoreFinalizer); got != tc.stays {
					t.Errorf("finalizers %q", live.GetFinalizers())
				}
				reason, _, _ := unstructured.NestedString(live.Object, "status", "reason")
				if !strings.Contains(reason, tc.says) || tc.says == "" && reason != "" || tc.never != "" && strings.Contains(strings.ReplaceAll(reason, "do not delete it", ""), tc.never) {
					t.Errorf("reason %q", reason)
				}
				if tc.stays { // until somebody edits it back
					if _, err := restores.Update(t.Context(), object("a", begun, deleting), metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
					n.expect(t, "a begins")
				}
				end()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A CustomResourceDefinition without the status subresource is replaced once a status cannot be written.
func TestTheDefinitionIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		restore := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid of a"}}
		etcd := versionedfake.NewSimpleClientset(restore)
		etcd.PrependReactor("update", "etcdrestores", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(api.Resource(api.EtcdRestoreResourcePlural), "a")
		})
		c, crds, _ := newControllerOf(t, etcd)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		definitions := crds.ApiextensionsV1().CustomResourceDefinitions()
		crd, err := definitions.Get(t.Context(), api.EtcdRestoreCRDName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		crd.Annotations, crd.Spec.Versions[0].Subresources = nil, nil
		if _, err := definitions.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		runner, err := c.makeRestore(restore)
		if err != nil {
			t.Fatal(err)
		}
		go runner.Run(ctx)
		time.Sleep(time.Minute)
		if crd, err = definitions.Get(t.Context(), api.EtcdRestoreCRDName, metav1.GetOptions{}); err != nil || crd.Spec.Versions[0].Subresources == nil {
			t.Errorf("the CRD has the subresources %v: %v", crd.Spec.Versions[0].Subresources, err)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
