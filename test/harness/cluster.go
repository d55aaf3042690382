// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/process"
)

// A Cluster is a handle to an EtcdCluster in a test's namespace.
type Cluster struct {
	Name string

	n    *Namespace
	want *v1beta2.EtcdCluster // as last written by the test
	etcd *connections
	// Clients use the settings from the creation: they connect while the test edits.
	clientTLS, unverified         bool
	operatorSecret, clusterDomain string
	userSecret                    string
}

// Create creates an EtcdCluster named "etcd" of a size and version; an empty
// version is the default.
func (n *Namespace) Create(size int, version string) *Cluster {
	n.t.Helper()
	return n.CreateObject(&v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd"},
		Spec:       v1beta2.ClusterSpec{Size: size, Version: version},
	})
}

// CreateObject creates an EtcdCluster.
func (n *Namespace) CreateObject(object *v1beta2.EtcdCluster) *Cluster {
	n.t.Helper()
	created, err := n.EtcdClusters.EtcdV1beta2().EtcdClusters(n.Name).Create(n.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatalf("create EtcdCluster %s: %v", object.Name, err)
	}
	return n.handle(created)
}

// Adopt returns a handle to an EtcdCluster that something else has created.
func (n *Namespace) Adopt(name string) *Cluster {
	n.t.Helper()
	object, err := n.EtcdClusters.EtcdV1beta2().EtcdClusters(n.Name).Get(n.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatalf("get EtcdCluster %s: %v", name, err)
	}
	return n.handle(object)
}

func (n *Namespace) handle(object *v1beta2.EtcdCluster) *Cluster {
	n.record.watchClusters()
	c := &Cluster{Name: object.Name, n: n, want: object,
		clientTLS: object.Spec.ClientTLS(), unverified: object.Spec.SkipsVerification(), operatorSecret: object.Spec.OperatorSecret(), clusterDomain: object.Spec.ClusterDomain(), userSecret: object.Spec.CredentialsSecret()}
	n.handles[c.Name] = c
	c.etcd = newConnections(func(pod *corev1.Pod) *tls.Config { return c.security(c.host(pod)) }, c.user)
	n.t.Cleanup(c.etcd.close)
	return c
}

// Update edits the spec.
func (c *Cluster) Update(edit func(*v1beta2.ClusterSpec)) {
	c.n.t.Helper()
	if err := c.TryUpdate(edit); err != nil {
		c.n.t.Fatalf("update EtcdCluster %s: %v", c.Name, err)
	}
}

// conflictPatience is for objects whose status others write meanwhile: on a loaded machine,
// conflicts repeat.
var conflictPatience = wait.Backoff{Steps: 30, Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 0.1}

// TryUpdate is Update for edits that the API server may refuse.
func (c *Cluster) TryUpdate(edit func(*v1beta2.ClusterSpec)) error {
	clusters := c.n.EtcdClusters.EtcdV1beta2().EtcdClusters(c.n.Name)
	return retry.RetryOnConflict(conflictPatience, func() error {
		object, err := clusters.Get(c.n.t.Context(), c.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(&object.Spec)
		object, err = clusters.Update(c.n.t.Context(), object, metav1.UpdateOptions{})
		if err == nil {
			c.want = object
		}
		return err
	})
}

// Resize changes the size.
func (c *Cluster) Resize(size int) {
	c.n.t.Helper()
	c.Update(func(spec *v1beta2.ClusterSpec) { spec.Size = size })
}

// SetVersion changes the version.
func (c *Cluster) SetVersion(version string) {
	c.n.t.Helper()
	c.Update(func(spec *v1beta2.ClusterSpec) { spec.Version = version })
}

// WaitObserved waits until the operator has seen the last edit.
func (c *Cluster) WaitObserved() {
	c.n.t.Helper()
	Wait(c.n.t, "the last edit observed", Settle, func(context.Context) error {
		if seen := c.Status().ObservedGeneration; seen < c.want.Generation {
			return fmt.Errorf("status.observedGeneration is %d, and not %d", seen, c.want.Generation)
		}
		return nil
	})
}

// Delete deletes the EtcdCluster and does not wait.
func (c *Cluster) Delete() {
	c.n.t.Helper()
	err := c.n.EtcdClusters.EtcdV1beta2().EtcdClusters(c.n.Name).Delete(c.n.t.Context(), c.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.n.t.Fatalf("delete EtcdCluster %s: %v", c.Name, err)
	}
}

// Object returns the EtcdCluster as last seen, or nil if there is none.
func (c *Cluster) Object() *v1beta2.EtcdCluster {
	object, err := c.n.record.clusters.EtcdClusters(c.n.Name).Get(c.Name)
	if err != nil {
		return nil // a cache returns no other error than NotFound
	}
	return object
}

// Status is the status as last seen.
func (c *Cluster) Status() v1beta2.ClusterStatus {
	if object := c.Object(); object != nil {
		return object.Status
	}
	return v1beta2.ClusterStatus{}
}

// Pods returns all pods of the cluster by name, including terminating ones.
func (c *Cluster) Pods() []*corev1.Pod {
	pods := c.n.Pods()
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		return pod.Labels["app"] != "etcd" || pod.Labels["etcd_cluster"] != c.Name
	})
}

// Pods returns all pods of the namespace, by name.
func (n *Namespace) Pods() []*corev1.Pod {
	pods, err := n.record.pods.Pods(n.Name).List(labels.Everything())
	if err != nil {
		n.t.Fatalf("list pods: %v", err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// Service returns a Service of the namespace as last seen, or nil.
func (n *Namespace) Service(name string) *corev1.Service {
	service, err := n.record.services.Services(n.Name).Get(name)
	if err != nil {
		return nil // a cache returns no other error than NotFound
	}
	return service
}

// OnPod calls hook with each change of a pod, in order, until the test ends or it is released.
// A hook must not block.
func (n *Namespace) OnPod(hook func(*corev1.Pod)) (release func()) {
	return n.record.podHooks.add(hook)
}

// OnPod is Namespace.OnPod for the cluster's pods alone.
func (c *Cluster) OnPod(hook func(*corev1.Pod)) (release func()) {
	return c.n.OnPod(func(pod *corev1.Pod) {
		if pod.Labels["etcd_cluster"] == c.Name {
			hook(pod)
		}
	})
}

// CrashMember kills the etcd process of a pod with SIGKILL.
func (c *Cluster) CrashMember(pod *corev1.Pod) {
	c.n.t.Helper()
	if err := c.TryCrashMember(pod); err != nil {
		c.n.t.Fatalf("crash a member: %v", err)
	}
}

// TryCrashMember is CrashMember for when etcd may be down already.
func (c *Cluster) TryCrashMember(pod *corev1.Pod) error {
	return killProcess(pod, "etcd", syscall.SIGKILL)
}

// StopMember stops the etcd process of a pod. The member is silent, and Kubernetes notices
// only after some failed probes.
func (c *Cluster) StopMember(pod *corev1.Pod) {
	c.n.t.Helper()
	pid, err := Process(pod, "etcd")
	if err == nil {
		err = process.Stop(pid)
	}
	if err != nil {
		c.n.t.Fatalf("stop member %s: %v", pod.Name, err)
	}
	c.n.record.addState("member "+pod.Name, "stopped")
	c.n.t.Cleanup(func() { _ = killProcess(pod, "etcd", syscall.SIGCONT) }) // it may be gone
}

// LoseMembers deletes pods by force, at the same instant for etcd: it stops the processes
// first. A pod that Kubernetes has deleted runs on for a while, under load for seconds, and
// its member would still vote.
func (c *Cluster) LoseMembers(pods ...*corev1.Pod) {
	c.n.t.Helper()
	for _, pod := range pods {
		c.StopMember(pod)
	}
	for _, pod := range pods {
		c.n.DeletePod(pod)
	}
}

// ContinueMember continues a stopped member. If Kubernetes has restarted it meanwhile, it does
// nothing.
func (c *Cluster) ContinueMember(pod *corev1.Pod) {
	c.n.t.Helper()
	if err := killProcess(pod, "etcd", syscall.SIGCONT); err != nil {
		c.n.t.Logf(note+"continue a member: %v", err)
	}
	c.n.record.addState("member "+pod.Name, "continued")
}

// WaitRestarted waits until etcd has restarted in a pod since the pod was read, and is ready.
func (c *Cluster) WaitRestarted(before *corev1.Pod) {
	c.n.t.Helper()
	Wait(c.n.t, "restart of etcd in "+before.Name, Settle, func(context.Context) error {
		for _, pod := range c.Pods() {
			if pod.UID != before.UID {
				continue
			}
			if Ready(pod) && restarts(pod) > restarts(before) {
				return nil
			}
			return errors.New(podLine(pod, false))
		}
		return errors.New("the pod is gone")
	})
}

func restarts(pod *corev1.Pod) int32 {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == "etcd" {
			return status.RestartCount
		}
	}
	return 0
}

// WaitGone waits until nothing of the cluster is left: object, pods, Services.
func (c *Cluster) WaitGone(within time.Duration) {
	c.n.t.Helper()
	Wait(c.n.t, "nothing left of EtcdCluster "+c.Name, within, func(context.Context) error {
		if c.Object() != nil {
			return errors.New("the EtcdCluster is there")
		}
		if pods := c.Pods(); len(pods) > 0 {
			return fmt.Errorf("pods are there: %v", podNames(pods))
		}
		for _, name := range []string{c.Name, c.Name + "-client"} {
			if c.n.Service(name) != nil {
				return fmt.Errorf("service %s is there", name)
			}
		}
		return nil
	})
}

func podNames(pods []*corev1.Pod) []string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Name
	}
	return names
}
