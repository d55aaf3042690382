// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/notice/noticetest"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
)

// world is an API server with an etcd operator, kubelets, a store with one backup and
// a server of backups. It lives in a bubble of testing/synctest; tick is a second of
// all but the restore operator.
type world struct {
	*apiServer
	noticetest.Recorder
	cfg Config

	// find is what reading the backup comes to.
	find func() (selection.Verified, []string, error)
	// fetch is how the first member fetches a backup; nil: it gets it.
	fetch func(backupserver.Backup) bool
	// etcdOperator reports whether one is there, deadNode whether the kubelet of some
	// pods has gone.
	etcdOperator bool
	// whole are the EtcdClusters that once had all their members.
	whole map[types.UID]bool
	// fullDisk has the members refuse writes.
	fullDisk bool
	deadNode map[string]bool
	members  int // names given

	offersMu  sync.Mutex
	offers    map[string]backupserver.Backup // by name and token
	withdrawn int                            // how many offers were
}

// digest is a SHA-256 that distinguishes backups.
func digest(n int) string { return fmt.Sprintf("%064x", n) }

func backup(n int) selection.Verified {
	return selection.Verified{Key: "etcd.backup", Path: "bucket/etcd.backup", Size: int64(1000 + n), SHA256: digest(n), EtcdVersion: "3.6.16", EtcdRevision: int64(n)}
}

func testRestore() *api.EtcdRestore {
	return &api.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Spec: api.RestoreSpec{
			EtcdCluster: api.EtcdClusterRef{Name: "c"}, BackupStorageType: api.BackupStorageTypeS3,
			BackupSource: api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/etcd.backup"}},
		},
	}
}

func testCluster(size int) *api.EtcdCluster {
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "keep"}},
		Spec:       api.ClusterSpec{Size: size, Version: "3.6.16"},
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{apiServer: newAPIServer(t), etcdOperator: true, deadNode: map[string]bool{}, offers: map[string]backupserver.Backup{}, whole: map[types.UID]bool{}}
	nothing := func(string, string, string, clienttesting.Action) error { return nil }
	w.before, w.after = nothing, nothing
	w.find = func() (selection.Verified, []string, error) { return backup(1), nil, nil }
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	logger := logrus.New()
	logger.SetOutput(t.Output())
	logger.SetLevel(logrus.WarnLevel)
	if testing.Verbose() {
		logger.SetLevel(logrus.InfoLevel)
	}
	w.cfg = Config{
		Kube: w.kube, Etcd: w.etcd, Dynamic: w.dynamic, Server: w, Reached: func() error { return nil }, URL: "http://s:19999/v1/backup/",
		Recorder: &w.Recorder, Metrics: metrics, Logger: logrus.NewEntry(logger), Clock: clock.RealClock{},
		OpenLocation: func(context.Context, string, *api.RestoreSpec) (*location.Location, error) {
			return &location.Location{Store: nothingStored{}, Bucket: "bucket", Key: "etcd.backup"}, nil
		},
		Find: func(ctx context.Context, _ *location.Location, spec *api.RestoreSpec, _ func(string, int64, int64)) (selection.Verified, []string, error) {
			reading := time.NewTimer(3 * time.Second)
			defer reading.Stop()
			select {
			case <-reading.C:
				w.mu.Lock()
				find := w.find
				w.mu.Unlock()
				found, passed, err := find()
				found.Revision = spec.Revision
				return found, passed, err
			case <-ctx.Done():
				return selection.Verified{}, nil, context.Cause(ctx)
			}
		},
	}
	return w
}

// Offer makes the world the server of backups.
func (w *world) Offer(name, token string, b backupserver.Backup) func() {
	w.offersMu.Lock()
	defer w.offersMu.Unlock()
	key := name + " " + token
	w.offers[key] = b
	return func() {
		w.offersMu.Lock()
		defer w.offersMu.Unlock()
		delete(w.offers, key)
		w.withdrawn++
	}
}

// restore is the EtcdRestore as the API server has it, nil where it is gone.
func (w *world) restore() *api.EtcdRestore {
	u := w.get("etcdrestores", "c")
	if u == nil {
		return nil
	}
	obj, err := typed("etcdrestores", u)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	return obj.(*api.EtcdRestore)
}

// cluster is the EtcdCluster, nil where it is gone.
func (w *world) cluster() *api.EtcdCluster {
	u := w.get("etcdclusters", "c")
	if u == nil {
		return nil
	}
	c := &api.EtcdCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		w.t.Error(err)
	}
	return c
}

func (w *world) setStatus(c *api.EtcdCluster) {
	u := w.get("etcdclusters", "c").DeepCopy()
	u.Object["status"] = untyped("etcdclusters", c).Object["status"]
	w.put("etcdclusters", u)
	if c.Status.ReadyMembers == c.Spec.Size {
		w.whole[c.UID] = true
	}
}

// edit changes the EtcdRestore.
func (w *world) edit(change func(*api.EtcdRestore)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	obj := w.restore()
	if obj == nil {
		return
	}
	change(obj)
	w.put("etcdrestores", untyped("etcdrestores", obj))
}

// change changes the world while others look at it.
func (w *world) change(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
}

// run starts a Restore with an informer, and returns what stops both and waits.
func (w *world) run() (stop func()) {
	w.t.Helper()
	w.mu.Lock()
	obj := w.restore()
	w.mu.Unlock()
	if obj == nil {
		return func() {}
	}
	r, err := New(w.cfg, obj)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	running.Go(func() {
		seen := obj.ResourceVersion
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			w.mu.Lock()
			now := w.restore()
			w.mu.Unlock()
			if now != nil && now.UID == obj.UID && now.ResourceVersion != seen {
				seen = now.ResourceVersion
				r.Update(now)
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

// live lets some time pass.
func (w *world) live(d time.Duration) {
	for range int(d / time.Second) {
		time.Sleep(time.Second)
		synctest.Wait()
		w.mu.Lock()
		w.tick()
		w.mu.Unlock()
	}
	synctest.Wait()
}

// await lets time pass until something holds.
func (w *world) await(what string, within time.Duration, holds func() bool) {
	w.t.Helper()
	for range int(within / time.Second) {
		w.live(time.Second)
		w.mu.Lock()
		ok := holds()
		w.mu.Unlock()
		if ok {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	st := api.RestoreStatus{}
	if r := w.restore(); r != nil {
		st = r.Status
	}
	w.t.Fatalf("%s is awaited in vain; status %s: %s; events:\n%s", what, st.Phase, st.Reason, strings.Join(w.Events(), "\n"))
}

// tick is a second of the garbage collector, the kubelets and the etcd operator.
func (w *world) tick() {
	w.collect()
	for _, p := range w.all("pods") {
		if p.GetDeletionTimestamp() != nil && !w.deadNode[p.GetName()] {
			delete(w.objects, named("pods", p.GetName()))
		}
	}
	if w.etcdOperator {
		w.operateEtcd()
	}
}

// operateEtcd is what an etcd operator does in a second.
func (w *world) operateEtcd() {
	c := w.cluster()
	if c == nil || c.DeletionTimestamp != nil || c.Spec.Paused {
		return
	}
	pods := 0
	for _, p := range w.all("pods") {
		if metav1.IsControlledBy(p, c) {
			pods++
		}
	}
	st := &c.Status
	switch st.Phase {
	case api.ClusterPhaseNone:
		seed, err := api.SeedBackupOf(c)
		if err != nil {
			return
		}
		st.Phase = api.ClusterPhaseCreating
		if seed != nil {
			st.RestoredFrom = &api.RestoredFrom{RestoreUID: seed.RestoreUID, Key: seed.Key, SHA256: seed.SHA256, EtcdRevision: seed.EtcdRevision, Revision: seed.Revision, BumpRevision: seed.BumpRevision}
		}
		w.own("services", "c", c)
		w.own("services", "c-client", c)
		w.member(c)
	case api.ClusterPhaseCreating:
		if st.RestoredFrom != nil && !w.fetched(c) {
			return
		}
		st.Phase, st.CurrentVersion, pods = api.ClusterPhaseRunning, "3.6.16", 1
	case api.ClusterPhaseRunning:
		if pods == 0 {
			st.Phase, st.Reason = api.ClusterPhaseFailed, "all members are lost"
		} else if pods < c.Spec.Size {
			w.member(c)
		}
	}
	st.Size, st.ReadyMembers, st.ObservedGeneration = pods, pods, c.Generation
	st.Conditions = isAvailable(st.Phase == api.ClusterPhaseRunning && !w.fullDisk)
	w.setStatus(c)
}

// isAvailable is the condition of that name.
func isAvailable(is bool) []api.ClusterCondition {
	c := api.ClusterCondition{Type: api.ClusterConditionAvailable, Status: corev1.ConditionFalse, Message: "writes are refused since an alarm NOSPACE was raised"}
	if is {
		c.Status, c.Message = corev1.ConditionTrue, ""
	}
	return []api.ClusterCondition{c}
}

// fetched reports whether the first member can have the backup.
func (w *world) fetched(c *api.EtcdCluster) bool {
	seed, err := api.SeedBackupOf(c)
	if err != nil || seed == nil {
		return false
	}
	secret := w.get("secrets", seed.Secret)
	if secret == nil {
		return false
	}
	obj, err := typed("secrets", secret)
	if err != nil {
		w.t.Error(err)
	}
	w.offersMu.Lock()
	defer w.offersMu.Unlock()
	b, offered := w.offers["c "+string(obj.(*corev1.Secret).Data[api.SeedBackupTokenKey])]
	if !offered || b.SHA256 != seed.SHA256 || seed.URL != "http://s:19999/v1/backup/c" {
		return false
	}
	if w.fetch != nil {
		return w.fetch(b)
	}
	b.Served(b.Size)
	return true
}

func clusterLabels(member string) map[string]string {
	return map[string]string{"app": "etcd", "etcd_cluster": "c", "etcd_node": member}
}

func ownedBy(c *api.EtcdCluster) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(c, api.SchemeGroupVersion.WithKind("EtcdCluster"))}
}

// own makes an object of a cluster, or adopts it.
func (w *world) own(resource, name string, c *api.EtcdCluster) {
	if u := w.get(resource, name); u != nil {
		u = u.DeepCopy()
		u.SetOwnerReferences(ownedBy(c))
		w.put(resource, u)
		return
	}
	u := &unstructured.Unstructured{}
	u.SetName(name)
	u.SetLabels(clusterLabels(name))
	u.SetOwnerReferences(ownedBy(c))
	w.add(resource, u)
}

// member makes a pod with a volume.
func (w *world) member(c *api.EtcdCluster) {
	w.members++
	name := fmt.Sprintf("c-%d", w.members)
	w.own("persistentvolumeclaims", name, c)
	w.own("pods", name, c)
}

// running makes a cluster that has been there for long.
func (w *world) running(size int) types.UID {
	w.mu.Lock()
	uid := w.add("etcdclusters", testCluster(size)).GetUID()
	for range size + 2 {
		w.operateEtcd()
	}
	w.mu.Unlock()
	return uid
}
