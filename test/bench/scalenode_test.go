//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// podNetwork holds the addresses of simulated pods. RFC 2544 reserves it for benchmarks.
	podNetwork = "198.18.0.0/16"
	// simulatedLabel is that of the node, which pods select.
	simulatedLabel = "etcd-operator.bench/simulated"
	// kubeletsAtOnce is how many requests about pods the node sends at once.
	kubeletsAtOnce = 32
)

// A simulatedNode is a Node without a machine. Its pods have a kubelet each.
type simulatedNode struct {
	n       *harness.Namespace
	members *standIns
	name    string

	running   sync.WaitGroup
	slots     chan struct{}
	mu        sync.Mutex
	addresses int   // that it has given
	err       error // the first
}

// startNode creates the node, and removes it when the test ends.
func startNode(t *testing.T, n *harness.Namespace) *simulatedNode {
	t.Helper()
	node := &simulatedNode{n: n, members: startStandIns(t), name: n.Name, slots: make(chan struct{}, kubeletsAtOnce)}
	ctx, stop := context.WithCancel(t.Context())
	capacity := corev1.ResourceList{"cpu": resource.MustParse("10000"), "memory": resource.MustParse("10Ti"), "ephemeral-storage": resource.MustParse("10Ti"), "pods": resource.MustParse("10000")}
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.name, Labels: map[string]string{simulatedLabel: node.name}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
		},
	}
	object, err := n.Kube.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create the node %s: %v", node.name, err)
	}
	node.heartbeat(ctx, t, object)
	factory := informers.NewSharedInformerFactoryWithOptions(n.Kube, 0, informers.WithNamespace(n.Name), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node.name).String()
	}))
	kubelets := map[types.UID]*simulatedPod{} // handlers run one after another
	handle := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return
		}
		p := kubelets[pod.UID]
		if p == nil {
			p = &simulatedPod{n: node, wake: make(chan struct{}, 1)}
			kubelets[pod.UID] = p
			node.running.Go(func() { p.run(ctx) })
		}
		p.show(pod)
	}
	gone := func(obj any) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok && kubelets[pod.UID] != nil {
			kubelets[pod.UID].show(nil)
			delete(kubelets, pod.UID)
		}
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, obj any) { handle(obj) }, DeleteFunc: gone,
	}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
		node.running.Wait()
		node.members.stopAll()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
		if err := n.Kube.CoreV1().Pods(n.Name).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			t.Errorf("delete the simulated pods: %v", err)
		}
		if err := n.Kube.CoreV1().Nodes().Delete(ctx, node.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the node %s: %v", node.name, err)
		}
		if node.err != nil {
			t.Error(node.err)
		}
	})
	return node
}

// heartbeat keeps the node ready: Kubernetes evicts the pods of a silent one.
func (n *simulatedNode) heartbeat(ctx context.Context, t *testing.T, node *corev1.Node) {
	t.Helper()
	leases := n.n.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro())},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create the Lease of the node: %v", err)
	}
	n.running.Go(func() {
		ticker := time.NewTicker(5 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
			renewed, err := leases.Update(ctx, lease, metav1.UpdateOptions{})
			if err != nil {
				n.fail(ctx, fmt.Errorf("renew the Lease of the node: %w", err))
				continue
			}
			lease = renewed
		}
	})
}

// fail notes the first error. The end of the test is none.
func (n *simulatedNode) fail(ctx context.Context, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil && ctx.Err() == nil {
		n.err = err
	}
}

// address returns an address that no pod has had. The space holds 64,000.
func (n *simulatedNode) address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.addresses
	n.addresses++
	return fmt.Sprintf("198.18.%d.%d", i/250, i%250+1)
}

// slot waits for a turn to send a request, and returns its end.
func (n *simulatedNode) slot() (end func()) {
	n.slots <- struct{}{}
	return func() { <-n.slots }
}

func (n *simulatedNode) pods() typedcorev1.PodInterface { return n.n.Kube.CoreV1().Pods(n.n.Name) }
