// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	versionedfake "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/notice/noticetest"
	"github.com/etcd-operator/etcd-operator/pkg/readiness/readinesstest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// world is an API server made of fakes, with the optimistic locking that they
// lack, an etcd whose snapshots are a few bytes, and a store in memory. It lives in
// a bubble of testing/synctest.
type world struct {
	t        *testing.T
	kube     *fake.Clientset
	etcd     *versionedfake.Clientset
	store    *memory
	registry *prometheus.Registry
	cfg      Config
	version  atomic.Int64 // last resourceVersion
	revision atomic.Int64 // of etcd
	changed  chan struct{}
	noticetest.Recorder

	// What is in the way; nil: nothing.
	apiDown      atomic.Bool
	openLocation func() error
	openSnapshot func(ctx context.Context, source snapshot.Source) error
	linearizable atomic.Bool

	mu       sync.Mutex
	statuses []api.BackupStatus // each that was written
	logged   strings.Builder
}

const testUID types.UID = "11111111-1111-1111-1111-111111111111"

// testBackup is an EtcdBackup as a user makes it.
func testBackup(policy *api.BackupPolicy) *api.EtcdBackup {
	return &api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Name: "b", Namespace: "ns", UID: testUID, Generation: 1, ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second)),
		},
		Spec: api.BackupSpec{
			EtcdEndpoints: []string{"http://c-client:2379"},
			StorageType:   api.BackupStorageTypeS3,
			BackupSource:  api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/etcd"}},
			BackupPolicy:  policy,
		},
	}
}

var backupsResource = api.SchemeGroupVersion.WithResource(api.EtcdBackupResourcePlural)

func newWorld(t *testing.T, objects ...*api.EtcdBackup) *world {
	t.Helper()
	w := &world{ // without managed fields, as in pkg/cluster
		t: t, kube: fake.NewSimpleClientset(), etcd: versionedfake.NewSimpleClientset(), store: newMemory(),
		registry: prometheus.NewRegistry(), changed: make(chan struct{}, 1),
	}
	w.version.Store(1000)
	w.revision.Store(1)
	w.linearizable.Store(true)
	for _, obj := range objects {
		if err := w.etcd.Tracker().Add(obj.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	w.etcd.PrependReactor("update", "etcdbackups", w.updateStatus)
	w.etcd.PrependReactor("patch", "etcdbackups", w.patch)
	down := func(clienttesting.Action) (bool, runtime.Object, error) {
		return w.apiDown.Load(), nil, apierrors.NewServiceUnavailable("down")
	}
	w.etcd.PrependReactor("*", "*", down)
	w.kube.PrependReactor("*", "*", down)

	metrics, err := NewMetrics(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	logger := logrus.New()
	logger.SetOutput(lockedWriter{&w.mu, &w.logged})
	logger.SetLevel(logrus.DebugLevel)
	w.cfg = Config{
		Kube: w.kube, Etcd: w.etcd, Slots: NewSlots(false), Keys: NewKeys(), Recorder: &w.Recorder, Metrics: metrics,
		Logger: logrus.NewEntry(logger), Clock: clock.RealClock{},
		OpenSnapshot: w.snapshot,
		OpenLocation: func(_ context.Context, _ string, spec *api.BackupSpec) (*location.Location, error) {
			if w.openLocation != nil {
				if err := w.openLocation(); err != nil {
					return nil, err
				}
			}
			bucket, key, _ := strings.Cut(spec.Path(), "/")
			return &location.Location{Store: w.store, Bucket: bucket, Key: key}, nil
		},
	}
	return w
}

type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// snapshot is one of etcd: its content is its revision.
func (w *world) snapshot(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
	if w.openSnapshot != nil {
		if err := w.openSnapshot(ctx, source); err != nil {
			return nil, err
		}
	}
	revision := w.revision.Add(1)
	content := fmt.Sprintf("snapshot of revision %d", revision)
	sum := sha256.Sum256([]byte(content))
	read := &noticedReader{Reader: strings.NewReader(content)}
	return &Snapshot{
		ReadCloser: read, Revision: revision, Version: "3.6.16", Endpoint: "http://c-0:2379", Size: int64(len(content)), Linearizable: w.linearizable.Load(),
		SHA256: func() string {
			if !read.ended {
				return ""
			}
			return hex.EncodeToString(sum[:])
		},
	}, nil
}

// noticedReader knows whether it was read to its end.
type noticedReader struct {
	io.Reader
	ended bool
}

func (e *noticedReader) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.ended = e.ended || err != nil
	return n, err
}

func (e *noticedReader) Close() error { return nil }

// backup is a Backup of the object as the API server has it.
func (w *world) backup() *Backup {
	w.t.Helper()
	b, err := New(w.cfg, w.stored())
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// run starts a Backup with an informer, and returns what stops both and waits for
// their end.
func (w *world) run() (stop func()) {
	w.t.Helper()
	b := w.backup()
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.changed:
				if obj, err := w.get(); err == nil {
					b.Update(obj)
				}
			}
		}
	})
	synctest.Wait()
	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

func (w *world) nextVersion() string { return strconv.FormatInt(w.version.Add(1), 10) }

func (w *world) get() (*api.EtcdBackup, error) {
	obj, err := w.etcd.Tracker().Get(backupsResource, "ns", "b")
	if err != nil {
		return nil, err
	}
	return obj.(*api.EtcdBackup).DeepCopy(), nil
}

// stored is the object as the API server has it.
func (w *world) stored() *api.EtcdBackup {
	w.t.Helper()
	obj, err := w.get()
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

func (w *world) status() api.BackupStatus { return w.stored().Status }

func (w *world) put(obj *api.EtcdBackup) error {
	obj.ResourceVersion = w.nextVersion()
	if err := w.etcd.Tracker().Update(backupsResource, obj, obj.Namespace); err != nil {
		return err
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return nil
}

// edit changes the object in the API server, as a user does. An edit of the spec
// has another generation.
func (w *world) edit(change func(*api.EtcdBackup)) {
	w.t.Helper()
	obj := w.stored()
	before := obj.DeepCopy()
	change(obj)
	if !same(before.Spec, obj.Spec) {
		obj.Generation++
	}
	if err := w.put(obj); err != nil {
		w.t.Fatal(err)
	}
}

// remove is what kubectl delete does.
func (w *world) remove() {
	w.t.Helper()
	if len(w.stored().Finalizers) == 0 {
		if err := w.etcd.Tracker().Delete(backupsResource, "ns", "b"); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.edit(func(obj *api.EtcdBackup) { now := metav1.Now(); obj.DeletionTimestamp = &now })
}

// updateStatus writes the status alone, and refuses what was made from an older
// object or for another.
func (w *world) updateStatus(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "status" {
		return true, nil, fmt.Errorf("the object itself was written")
	}
	obj := action.(clienttesting.UpdateAction).GetObject().(*api.EtcdBackup)
	current, err := w.get()
	if err != nil {
		return true, nil, err
	}
	if current.ResourceVersion != obj.ResourceVersion || current.UID != obj.UID {
		return true, nil, conflict(obj.Name)
	}
	// As it comes back from JSON.
	text, err := json.Marshal(obj.Status)
	if err != nil {
		return true, nil, err
	}
	current.Status = api.BackupStatus{}
	if err := json.Unmarshal(text, &current.Status); err != nil {
		return true, nil, err
	}
	seen := current.DeepCopy()
	seen.Generation, seen.DeletionTimestamp = current.Status.ObservedGeneration, nil
	if _, _, err := readinesstest.Judge(seen); err != nil {
		w.t.Errorf("status %+v: %v", current.Status, err)
	}
	w.mu.Lock()
	w.statuses = append(w.statuses, current.Status)
	w.mu.Unlock()
	return true, current, w.put(current)
}

func conflict(name string) error {
	return apierrors.NewConflict(api.Resource("etcdbackups"), name, fmt.Errorf("the object has been modified"))
}

// patch changes the finalizers.
func (w *world) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	var asked struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
			Finalizers      []string
		}
	}
	if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &asked); err != nil {
		return true, nil, err
	}
	current, err := w.get()
	if err != nil {
		return true, nil, err
	}
	if current.UID != asked.Metadata.UID || current.ResourceVersion != asked.Metadata.ResourceVersion {
		return true, nil, conflict(current.Name)
	}
	current.Finalizers = asked.Metadata.Finalizers
	if current.DeletionTimestamp != nil && len(current.Finalizers) == 0 {
		return true, current, w.etcd.Tracker().Delete(backupsResource, "ns", "b")
	}
	return true, current, w.put(current)
}

// metric is the value of a series of the backup; false: there is none.
func (w *world) metric(name string, labels ...string) (float64, bool) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != "etcd_backup_operator_"+name || !strings.Contains(m.String(), strings.Join(labels, "")) {
				continue
			}
			if m.Counter != nil {
				return m.Counter.GetValue(), true
			}
			return m.Gauge.GetValue(), true
		}
	}
	return 0, false
}
