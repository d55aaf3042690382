// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	etcdfake "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// world is a Kubernetes with the EtcdCluster orders of three members, which really answer.
type world struct {
	t       *testing.T
	cluster *api.EtcdCluster
	members map[string]*etcdtest.Member
	kube    *fake.Clientset
	etcd    *etcdfake.Clientset
	// ports are the addresses behind pod:port.
	ports map[string]string
	// refuse is the answer to all connections to pods, if it is not nil.
	refuse error
	access *access.Access
	clock  clock.WithTicker
	in     *bytes.Buffer
	// open counts the tunnels, and mostOpen those that were open at the same time.
	open, mostOpen atomic.Int64
	// stdin takes the place of in, if it is not nil.
	stdin io.Reader
}

var names = []string{"orders-a", "orders-b", "orders-c"}

// newWorld makes a world in which all is well. The objects are added to it.
func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{
		t: t, members: map[string]*etcdtest.Member{}, ports: map[string]string{}, in: &bytes.Buffer{},
		clock: testingclock.NewFakeClock(now),
		cluster: &api.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "default", UID: "u1", Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
			Spec:       api.ClusterSpec{Size: 3, Version: "3.7.3"},
			Status: api.ClusterStatus{
				Phase: api.ClusterPhaseRunning, CurrentVersion: "3.7.3", InitialVersion: "3.7.3", ObservedGeneration: 1, Size: 3, ReadyMembers: 3,
				Conditions: []api.ClusterCondition{{Type: api.ClusterConditionAvailable, Status: corev1.ConditionTrue, Reason: "Cluster available"}},
			},
		},
	}
	var kube, etcds []runtime.Object
	for _, o := range objects {
		switch o.(type) {
		case *api.EtcdBackup, *api.EtcdRestore, *api.EtcdCluster:
			etcds = append(etcds, o)
		default:
			kube = append(kube, o)
		}
	}
	var listed []*etcdserverpb.Member
	for i, name := range names {
		listed = append(listed, &etcdserverpb.Member{
			ID: uint64(i + 1), Name: name, // small
			PeerURLs: []string{"http://" + name + ".orders.default.svc:2380"},
		})
	}
	for i, name := range names {
		m := &etcdtest.Member{
			Agreed: listed, Remembered: listed,
			Status: &etcdserverpb.StatusResponse{
				Header:  &etcdserverpb.ResponseHeader{MemberId: uint64(i + 1), ClusterId: 99, Revision: 81500}, // small
				Version: "3.7.3", Leader: 1, DbSize: 1200 << 20, DbSizeInUse: 732 << 20, DbSizeQuota: 8 << 30,
				RaftIndex: 1000, RaftAppliedIndex: 1000,
			},
		}
		m.Start(t)
		w.members[name] = m
		w.ports[name+":2379"] = net.JoinHostPort(m.IP, m.Port)
		w.serveMetrics(name, 0.002)
		zone := string(rune('a' + i))
		kube = append(kube, w.pod(name, "n"+fmt.Sprint(i+1)), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n" + fmt.Sprint(i+1), Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		})
	}
	w.kube = fake.NewClientset(kube...)
	// The fake deletes in a dry run too.
	w.kube.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		deletion, _ := a.(k8stesting.DeleteActionImpl)
		return len(deletion.DeleteOptions.DryRun) > 0, nil, nil
	})
	w.etcd = etcdfake.NewSimpleClientset(append(etcds, w.cluster)...)
	w.access = &access.Access{Kube: w.kube, Etcd: w.etcd, Namespace: "default"}
	return w
}

func (w *world) pod(name, node string) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: "pod-" + "uid", Labels: map[string]string{"app": "etcd", "etcd_cluster": "orders", "etcd_node": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "etcd.database.coreos.com/v1beta2", Kind: "EtcdCluster", Name: "orders", UID: "u1", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "etcd", Image: "quay.io/coreos/etcd:v3.7.3"}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// serveMetrics makes a member's fsync take so long, in seconds.
func (w *world) serveMetrics(name string, fsync float64) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(out, "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"%g\"} 0\n", fsync/2)
		fmt.Fprintf(out, "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"%g\"} 100\n", fsync)
		fmt.Fprintf(out, "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 100\n")
		fmt.Fprintf(out, "process_resident_memory_bytes 1e8\n")
	}))
	w.t.Cleanup(server.Close)
	w.ports[name+":2381"] = strings.TrimPrefix(server.URL, "http://")
}

// silence ends a member, as if its process hung.
func (w *world) silence(name string) {
	w.members[name].Hang = true
}

func (w *world) dial(ctx context.Context, address string) (net.Conn, error) {
	if w.refuse != nil {
		return nil, w.refuse
	}
	to, known := w.ports[address]
	if !known {
		return nil, errors.New("connection refused")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}

// run runs a command line.
func (w *world) run(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	return w.runContext(w.t.Context(), args...)
}

func (w *world) runContext(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	var out, errOut bytes.Buffer
	app := &App{IOStreams: genericiooptions.IOStreams{In: w.in, Out: &out, ErrOut: &errOut}, Clock: w.clock}
	if w.stdin != nil {
		app.In = w.stdin
	}
	app.Open = func() (*access.Access, error) { return w.access, nil }
	app.Dial = func(*access.Access) (etcd.Dial, func()) {
		for n := w.open.Add(1); ; {
			most := w.mostOpen.Load()
			if n <= most || w.mostOpen.CompareAndSwap(most, n) {
				return w.dial, func() { w.open.Add(-1) }
			}
		}
	}
	code = app.Run(ctx, args)
	return code, out.String(), errOut.String()
}

// update changes the EtcdCluster.
func (w *world) update(change func(*api.EtcdCluster)) {
	w.t.Helper()
	change(w.cluster)
	if _, err := w.etcd.EtcdV1beta2().EtcdClusters("default").Update(w.t.Context(), w.cluster, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func nightly() *api.EtcdBackup {
	taken := metav1.NewTime(now.Add(-6 * time.Hour))
	next := metav1.NewTime(now.Add(18 * time.Hour))
	return &api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "default"},
		Spec: api.BackupSpec{
			EtcdCluster: &api.EtcdClusterRef{Name: "orders"}, StorageType: api.BackupStorageTypeS3,
			BackupSource: api.BackupSource{S3: &api.S3BackupSource{Path: "mybucket/orders", AWSSecret: "aws"}},
			BackupPolicy: &api.BackupPolicy{Schedule: "0 6 * * *", MaxBackups: 7},
		},
		Status: api.BackupStatus{
			Phase: api.BackupPhaseWaiting, Succeeded: true, EtcdRevision: 80912, LastSuccessDate: &taken, NextExecutionDate: &next,
			SHA256: "ab12", Key: "mybucket/orders_v80912_2026-11-22-06:00:00", Size: 700 << 20, Backups: 7,
		},
	}
}
