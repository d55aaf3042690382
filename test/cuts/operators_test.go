//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backup"
	"github.com/etcd-operator/etcd-operator/pkg/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice/noticetest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// haste is by how much the clock of the etcd operator is faster. The time from the loss to the ways out,
// and the time between two looks, are then short.
const haste = 20

// operators are the etcd operator and the backup operator, with a model of the API server. The members
// are real.
type operators struct {
	*apiServer
	noticetest.Recorder
	clock   *clocktesting.FakeClock
	pods    cache.Indexer
	config  cluster.Config
	members map[string]*members.Member // by the URL that the operators use
	tls     *tls.Config
	store   string // directory of the backups
	// data are the servers of survivors' data, by the URL that the backup operator uses.
	data *dataServers

	stopCluster func()
	running     sync.WaitGroup // backups
}

// name and namespace of the EtcdCluster, and the EtcdBackup that has a store.
const (
	clusterName = "orders"
	namespace   = "ns"
	storeName   = "nightly"
)

func startOperators(t *testing.T, c *members.Cluster, security *members.TLS, config *tls.Config) *operators {
	t.Helper()
	obj := &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: clusterName, Namespace: namespace, UID: "the-uid", Generation: 1, ResourceVersion: "1", CreationTimestamp: metav1.Now()},
		Spec:       api.ClusterSpec{Size: len(c.Members), Version: c.Release.Version},
		Status:     api.ClusterStatus{Phase: api.ClusterPhaseRunning, Size: len(c.Members), CurrentVersion: c.Release.Version},
	}
	like := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: storeName, Namespace: namespace, UID: "the-store", ResourceVersion: "1"}}
	like.Spec.EtcdCluster = &api.EtcdClusterRef{Name: clusterName}
	like.Spec.StorageType, like.Spec.Volume = api.BackupStorageTypeVolume, &api.VolumeBackupSource{Path: "orders/etcd.backup"}
	like.Spec.BackupPolicy = &api.BackupPolicy{BackupIntervalInSecond: 86400}
	o := &operators{
		apiServer: newAPIServer(t, obj, like), clock: clocktesting.NewFakeClock(time.Now()), tls: config, store: t.TempDir(),
		members: map[string]*members.Member{},
		data:    newDataServers(),
	}
	for i, m := range c.Members {
		name := fmt.Sprintf("m%d", i)
		o.members[manifest.NamesOf(obj).ClientURL(name)] = m
		o.data.add(name, m, security, c.Release.Version)
		o.addPod(t, obj, name, i)
	}
	index := func() cache.Indexer {
		by := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		maps.Copy(by, cluster.Indexers)
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, by)
	}
	services, budgets := index(), index()
	o.pods = index()
	metrics, err := cluster.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	o.config = cluster.Config{
		Kube: o.kube, EtcdClusters: o.etcd, Metrics: metrics, Logger: logTo(t), Recorder: &o.Recorder, Clock: o.clock, OperatorImage: "operator",
		Pods: cluster.PodLister(o.pods), Services: cluster.ServiceLister(services), Volumes: cluster.VolumeLister(index()),
		Budgets: policylisters.NewPodDisruptionBudgetLister(budgets),
		Members: func() cluster.Members { return reach{o.newClient()} },
	}
	o.watch(t, services, budgets)
	o.startCluster(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var ticking sync.WaitGroup
	ticking.Go(func() { o.tick(ctx, t, services, budgets) })
	t.Cleanup(func() {
		cancel()
		ticking.Wait()
		o.stopCluster()
		o.running.Wait()
		o.data.serving.Wait()
		if t.Failed() {
			t.Logf("the events:\n%s", strings.Join(o.Events(), "\n"))
		}
	})
	return o
}

// addPod makes the pod of a member that runs, as its kubelet reports it.
func (o *operators) addPod(t *testing.T, obj *api.EtcdCluster, name string, i int) {
	t.Helper()
	pod, err := manifest.BuildPod(obj, manifest.MemberPod{Name: name, Version: obj.Spec.Version, InitialCluster: etcd.InitialCluster{"http://" + name: name}}, manifest.CertForms{}, "operator")
	if err != nil {
		t.Fatal(err)
	}
	started := true
	pod.Spec.NodeName = "node"
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.0.%d", i+1)
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "check-dns", Image: "operator", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "etcd", Image: "etcd:v" + obj.Spec.Version, Started: &started, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := o.kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// losePod deletes the pod of a member whose disk is gone.
func (o *operators) losePod(t *testing.T, name string) {
	t.Helper()
	if err := o.kube.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// startCluster starts an etcd operator. It replaces the one before, which remembered more than the status
// says.
func (o *operators) startCluster(t *testing.T) {
	t.Helper()
	if o.stopCluster != nil {
		o.stopCluster()
	}
	c, err := cluster.New(o.config, o.cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	o.deliver.Store(&delivery{c})
	o.stopCluster = func() {
		cancel()
		<-done
	}
}

// tick moves the clock, and does what informers do.
func (o *operators) tick(ctx context.Context, t *testing.T, services, budgets cache.Indexer) {
	const every = 20 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	begun, last := map[string]bool{}, time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-ticker.C:
			// A machine that is busy must not make the clock jump: nobody would have looked for minutes.
			o.clock.Step(min(now.Sub(last), 5*every) * haste)
			last = now
			o.serveData(ctx, t)
			o.watch(t, services, budgets)
			o.deliver.Load().Update(o.cluster(t))
			for _, b := range o.backups(t) {
				if b.Name != storeName && !begun[b.Name] {
					begun[b.Name] = true
					o.runBackup(ctx, t, &b)
				}
			}
		}
	}
}

// runBackup starts the backup operator's part for an EtcdBackup.
func (o *operators) runBackup(ctx context.Context, t *testing.T, obj *api.EtcdBackup) {
	t.Helper()
	metrics, err := backup.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Error(err)
		return
	}
	b, err := backup.New(backup.Config{
		Kube: o.kube, Etcd: o.etcd, VolumeDir: o.store, Slots: backup.NewSlots(false), Keys: backup.NewKeys(),
		Recorder: &o.Recorder, Metrics: metrics, Logger: logTo(t), Clock: clock.RealClock{},
		Members: func(*tls.Config, etcd.Credentials) snapshot.Client { return reachForBackups{o.newClient()} },
	}, obj)
	if err != nil {
		t.Error(err)
		return
	}
	o.running.Go(func() { b.Run(ctx) })
}

// client connects to the processes instead of pods.
type client struct {
	*etcd.Client
	members map[string]*members.Member
	data    *dataServers
}

func (o *operators) newClient() client { return client{etcd.NewClient(o.tls), o.members, o.data} }

var errNoSuch = errors.New("no such pod")

func (c client) conn(ep etcd.Endpoint) (*etcd.Conn, error) {
	if url := c.data.url(ep.URL); url != "" {
		return c.Client.Conn(etcd.Endpoint{URL: url})
	}
	m := c.members[ep.URL]
	if m == nil {
		return nil, fmt.Errorf("%s: %w", ep.URL, errNoSuch)
	}
	return c.Client.Conn(etcd.Endpoint{URL: m.URL})
}

// Retain keeps all: the test ends them.
func (client) Retain(map[etcd.Endpoint]bool) {}

// SetTLS and SetCredentials change nothing: the EtcdCluster has no Secrets.
func (client) SetTLS(*tls.Config) {}

func (client) SetCredentials(etcd.Credentials) {}

// reach is what the etcd operator connects with.
type reach struct{ client }

func (r reach) Conn(ep etcd.Endpoint) (cluster.Member, error) {
	conn, err := r.conn(ep)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (reach) CopiesDatabase(context.Context, string) (bool, error) { return false, nil }

func (r reach) NotServing(ctx context.Context, address string) (etcd.Status, error) {
	for i, name := range slices.Sorted(maps.Keys(r.members)) { // m0, m1 and so on
		if address == fmt.Sprintf("10.0.0.%d:%d", i+1, manifest.MetricsPort) {
			return etcd.NotServing(ctx, r.members[name].Metrics)
		}
	}
	return etcd.Status{}, errNoSuch
}

func (reach) ShareLogin(cluster.Members) {}

// reachForBackups is what the backup operator connects with.
type reachForBackups struct{ client }

func (r reachForBackups) Conn(ep etcd.Endpoint) (snapshot.Conn, error) {
	conn, err := r.conn(ep)
	if err != nil {
		return nil, err
	}
	return snapshotConn{conn}, nil
}

type snapshotConn struct{ *etcd.Conn }

func (c snapshotConn) Snapshot(ctx context.Context) (snapshot.Stream, int64, error) {
	stream, err := c.Conn.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	return stream, stream.Size, nil
}
