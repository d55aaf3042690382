// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// busyFleet are clusters of one member each, whose etcd restarts at once when its image changes.
// The API server is busy: the kubelet's reports arrive late.
type busyFleet struct {
	w        *world
	late     time.Duration
	kubelets sync.WaitGroup

	mu       sync.Mutex
	clusters map[string]*Cluster
	versions map[string]string // that run, by pod
}

// The number of passes must not grow with the time that a busy API server needs. An upgrade of a
// thousand clusters makes it busy.
func TestAnUpgradeWithLateReportsTakesFewPasses(t *testing.T) {
	const clusters, most = 5, 10
	for _, late := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newBusyFleet(t, clusters)
			f.late = late
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for _, c := range f.clusters {
				running.Go(func() { c.Run(ctx) })
			}
			time.Sleep(time.Minute)
			before := f.w.passes.Load()
			for name := range f.clusters {
				f.upgrade(name)
			}
			time.Sleep(2*late + Period)
			synctest.Wait()
			for name := range f.clusters {
				if obj := f.stored(name); obj.Status.CurrentVersion != "3.6.17" || obj.Status.Condition(api.ClusterConditionReady).Status != corev1.ConditionTrue {
					t.Errorf("%s late: %s is %+v", late, name, obj.Status)
				}
			}
			idle := int64((2*late+Period)/Period) + 1
			if each := (f.w.passes.Load() - before) / clusters; each > most+idle {
				t.Errorf("%s late: %d passes for each cluster, want at most %d beside %d on the timer", late, each, most, idle)
			}
			cancel()
			running.Wait()
			f.kubelets.Wait()
		})
	}
}

func newBusyFleet(t *testing.T, n int) *busyFleet {
	t.Helper()
	f := &busyFleet{w: newWorld(t, clock.RealClock{}), clusters: map[string]*Cluster{}, versions: map[string]string{}}
	f.w.cfg.Members = func() Members { return busyMembers{f: f} }
	f.w.cfg.Kube = busyKube{f.w.kube, f}
	for i := range n {
		obj := testCluster()
		obj.Name, obj.UID, obj.Spec.Size = fmt.Sprint("c", i), types.UID(fmt.Sprint(testUID, i)), 1
		if err := f.w.clusters.Tracker().Add(obj.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		pod := memberPod(t, obj, obj.Name+"-0")
		var never corev1.ContainerState
		kubelet(pod, ended(0, ""), never, runs(), never, 0)
		pod.Status.PodIP = fmt.Sprint("10.0.0.", i+1)
		pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "")}
		f.versions[pod.Name] = obj.Spec.Version
		f.w.makePod(pod)
		f.clusters[obj.Name] = f.w.cluster(obj)
	}
	f.w.watch()
	for round := 0; ; round++ {
		busy := 0
		for _, c := range f.clusters {
			s, err := c.pass(t.Context())
			if err != nil && !isNotYet(err) || round == 30 {
				t.Fatalf("after %d passes: %s, %v", round, s, err)
			}
			if idle, ok := s.(plan.Idle); !ok || idle.Why.Kind != plan.AsSpecified {
				busy++
			}
		}
		f.w.watch()
		if busy == 0 {
			return f
		}
	}
}

func (f *busyFleet) stored(name string) *api.EtcdCluster {
	f.w.t.Helper()
	obj, err := f.w.stored("ns", name)
	if err != nil {
		f.w.t.Fatal(err)
	}
	return obj.DeepCopy()
}

// upgrade edits a cluster, as a user does.
func (f *busyFleet) upgrade(name string) {
	obj := f.stored(name)
	obj.Spec.Version, obj.Generation, obj.ResourceVersion = "3.6.17", 2, f.w.nextVersion()
	if err := f.w.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural), obj, "ns"); err != nil {
		f.w.t.Fatal(err)
	}
	f.clusters[name].Update(obj)
}

// restart runs another image in a pod, and reports that later.
func (f *busyFleet) restart(pod *corev1.Pod) {
	f.mu.Lock()
	f.versions[pod.Name] = manifest.VersionOf(pod.Spec.Containers[0].Image, "")
	f.mu.Unlock()
	f.show(pod)
	f.kubelets.Go(func() {
		for restarts, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
			time.Sleep(f.late)
			for i := range pod.Status.ContainerStatuses {
				if s := &pod.Status.ContainerStatuses[i]; s.Name == manifest.EtcdContainer {
					s.Image, s.RestartCount, s.LastTerminationState = pod.Spec.Containers[0].Image, 1, ended(0, "")
					s.Ready, s.Started = restarts == 1, new(restarts == 1)
				}
			}
			pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, ready, "")}
			f.show(pod)
		}
	})
}

// show puts a pod into the cache.
func (f *busyFleet) show(pod *corev1.Pod) {
	pod.ResourceVersion = f.w.nextVersion()
	err := errors.Join(f.w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod.DeepCopy(), "ns"), f.w.pods.Update(pod.DeepCopy()))
	if err != nil {
		f.w.t.Error(err)
	}
	f.clusters[strings.TrimSuffix(pod.Name, "-0")].Wake()
}

// busyKube reports each new image to the fleet.
type busyKube struct {
	kubernetes.Interface
	f *busyFleet
}

type busyCore struct {
	typedcorev1.CoreV1Interface
	f *busyFleet
}

type busyPods struct {
	typedcorev1.PodInterface
	f *busyFleet
}

func (k busyKube) CoreV1() typedcorev1.CoreV1Interface { return busyCore{k.Interface.CoreV1(), k.f} }

func (c busyCore) Pods(namespace string) typedcorev1.PodInterface {
	return busyPods{c.CoreV1Interface.Pods(namespace), c.f}
}

func (p busyPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	pod, err := p.PodInterface.Patch(ctx, name, kind, data, opts, sub...)
	if err == nil && strings.Contains(string(data), `"image"`) {
		p.f.restart(pod.DeepCopy())
	}
	return pod, err
}

// busyMembers are the members of any of the clusters.
type busyMembers struct {
	fakeMembers
	f *busyFleet
}

type busyMember struct {
	Member
	f    *busyFleet
	name string
}

func (m busyMembers) Conn(ep etcd.Endpoint) (Member, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(ep.URL, "http://"), ".")
	return busyMember{f: m.f, name: name}, nil
}

func (m busyMember) Status(context.Context) (etcd.Status, error) {
	m.f.mu.Lock()
	defer m.f.mu.Unlock()
	return etcd.Status{MemberID: 1, ClusterID: 8, LeaderID: 1, Version: m.f.versions[m.name], RaftTerm: 2, RaftIndex: 5000, RaftApplied: 5000, Revision: 33}, nil
}

func (m busyMember) Commits(context.Context) (etcd.Position, error) {
	return etcd.Position{ClusterID: 8, MemberID: 1, Term: 2, Revision: 33}, nil
}

func (m busyMember) Members(context.Context) ([]etcd.Member, error) {
	names := manifest.Names{Namespace: "ns", Cluster: strings.TrimSuffix(m.name, "-0")}
	return []etcd.Member{{ID: 1, Name: m.name, PeerURLs: []string{names.PeerURL(m.name)}}}, nil
}

func (m busyMember) ClusterVersion(context.Context) (etcd.Version, error) {
	return etcd.ParseVersion("3.6.0")
}
