//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// If the operator is killed between two of its calls, another instance continues. This test
// kills it in the middle of each operation, at moments that are visible from outside.

// An operation is work in whose middle the operator is killed.
type operation struct {
	name  string
	size  int // before
	start func(*testing.T, *harness.Namespace, *harness.Cluster) (gone []*corev1.Pod)
}

var operations = []operation{
	{"scaling up", 1, func(_ *testing.T, _ *harness.Namespace, c *harness.Cluster) []*corev1.Pod { c.Resize(3); return nil }},
	{"scaling further up", 3, func(_ *testing.T, _ *harness.Namespace, c *harness.Cluster) []*corev1.Pod { c.Resize(5); return nil }},
	{"scaling down", 5, func(_ *testing.T, _ *harness.Namespace, c *harness.Cluster) []*corev1.Pod { c.Resize(1); return nil }},
	{"replacing", 3, func(_ *testing.T, n *harness.Namespace, c *harness.Cluster) []*corev1.Pod {
		lost := c.Follower()
		n.DeletePod(lost)
		return []*corev1.Pod{lost}
	}},
	{"upgrading", 3, func(_ *testing.T, _ *harness.Namespace, c *harness.Cluster) []*corev1.Pod {
		c.SetVersion(etcd37)
		return nil
	}},
}

// A moment is when the operator is killed: as soon as a pod's change shows it.
type moment struct {
	name string
	// shows reports whether a pod's change, compared with the pods at the start of the
	// operation, is the moment.
	shows func(pod *corev1.Pod, before []*corev1.Pod) bool
}

var moments = []moment{
	{"at the first change", changed},
	{"as etcd starts", func(pod *corev1.Pod, before []*corev1.Pod) bool {
		return changed(pod, before) && (pod.DeletionTimestamp != nil || slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.State.Running != nil && s.Image == pod.Spec.Containers[0].Image
		}))
	}},
	{"as a pod becomes ready", func(pod *corev1.Pod, before []*corev1.Pod) bool {
		return changed(pod, before) && (pod.DeletionTimestamp != nil || harness.Ready(pod))
	}},
}

// changed reports whether a pod is new, about to be deleted, or has another image.
func changed(pod *corev1.Pod, before []*corev1.Pod) bool {
	i := slices.IndexFunc(before, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	return i < 0 || pod.DeletionTimestamp != nil || before[i].Spec.Containers[0].Image != pod.Spec.Containers[0].Image
}

// Every second operator is replaced: in another pod, it is another candidate and must wait for the Lease.
func TestOperatorKilledInTheMiddleOf(t *testing.T) {
	t.Parallel()
	for i, operation := range operations {
		t.Run(operation.name, func(t *testing.T) {
			t.Parallel()
			n := harness.New(t)
			cluster := n.Create(operation.size, etcd36)
			cluster.WaitSettled()
			writer := cluster.StartWriter()
			end := n.CrashOperator
			if i%2 == 0 {
				end = n.ReplaceOperator
			}
			gone := killAt(t, n, cluster, moments[i%len(moments)], end, func() []*corev1.Pod {
				return operation.start(t, n, cluster)
			})
			cluster.WaitSettled(gone...)
			cluster.VerifyWrites(writer)
		})
	}
}

func TestOperatorKilledInTheMiddleOfCreation(t *testing.T) {
	t.Parallel()
	for i, version := range []string{etcd35, etcd36, etcd37} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := harness.New(t)
			var cluster *harness.Cluster
			killAt(t, n, nil, moments[i], n.CrashOperator, func() []*corev1.Pod {
				cluster = n.Create(3, version)
				return nil
			})
			cluster.WaitSettled()
			if seeds := countAllSeeds(cluster); seeds != 1 {
				t.Errorf("%d pods start a new cluster, want 1", seeds)
			}
		})
	}
}

// The test kills the operator at each pod's change through a whole life: creation, growth, a
// loss, an upgrade, shrinking. It crashes each instance once, which the kubelet restarts at
// once, and replaces it the next time: the kubelet delays a second restart.
func TestOperatorKilledAllTheTime(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	change := make(chan struct{}, 1)
	release := n.OnPod(func(pod *corev1.Pod) {
		if pod.Labels["app"] == "etcd" {
			select {
			case change <- struct{}{}:
			default: // one kill at a time
			}
		}
	})
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	var killing sync.WaitGroup
	kills := 0
	killing.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-change:
			}
			if n.Operator() == nil {
				continue // after the last kill, the operator must finish something first
			}
			kill := n.TryCrashOperator
			if kills%2 == 1 {
				kill = n.TryReplaceOperator
			}
			if kill() == nil {
				kills++
			}
		}
	})
	cluster := n.Create(1, etcd35)
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	cluster.Resize(3)
	cluster.WaitSettled()
	lost := cluster.Leader()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)
	cluster.SetVersion(etcd36)
	cluster.WaitSettled()
	cluster.Resize(1)
	cluster.WaitSettled()
	cancel()
	killing.Wait()
	t.Logf("the operator was killed %d times", kills)
	if kills < 3 { // each of the five operations changes pods
		t.Errorf("the operator was killed only %d times", kills)
	}
	cluster.VerifyWrites(writer)
}

// killAt starts an operation and kills the operator at its moment.
func killAt(t *testing.T, n *harness.Namespace, cluster *harness.Cluster, moment moment, kill func(), start func() []*corev1.Pod) []*corev1.Pod {
	t.Helper()
	var before []*corev1.Pod
	if cluster != nil {
		before = cluster.Pods()
	}
	now := make(chan string, 1)
	release := n.OnPod(func(pod *corev1.Pod) {
		if pod.Labels["app"] == "etcd" && moment.shows(pod, before) {
			select {
			case now <- pod.Name:
			default: // the first is enough
			}
		}
	})
	defer release()
	gone := start()
	var pod string
	harness.Wait(t, moment.name, harness.Settle, func(context.Context) error {
		select {
		case pod = <-now:
			return nil
		default:
			return errors.New("it has not come")
		}
	})
	kill()
	t.Logf("the operator was killed %s, of %s", moment.name, pod)
	return gone
}

func countAllSeeds(cluster *harness.Cluster) int {
	seeds := 0
	for _, pod := range cluster.Pods() {
		if slices.Contains(pod.Spec.Containers[0].Command, "--initial-cluster-state=new") {
			seeds++
		}
	}
	return seeds
}
