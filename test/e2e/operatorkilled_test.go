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
	if seeds := countAllSeeds(cluster); seeds != 1 {
		t.Errorf("%d pods start a new cluster, want 1", seeds)
	}
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

// killAsAPodBecomesReady starts a creation and crashes the operator as soon as a pod of etcd is ready.
func killAsAPodBecomesReady(t *testing.T, n *harness.Namespace, start func()) {
	t.Helper()
	now := make(chan string, 1)
	release := n.OnPod(func(pod *corev1.Pod) {
		if pod.Labels["app"] == "etcd" && harness.Ready(pod) {
			select {
			case now <- pod.Name:
			default: // the first is enough
			}
		}
	})
	defer release()
	start()
	var pod string
	harness.Wait(t, "a pod of etcd that is ready", harness.Settle, func(context.Context) error {
		select {
		case pod = <-now:
			return nil
		default:
			return errors.New("there is none")
		}
	})
	n.CrashOperator()
	t.Logf("the operator was killed when %s was ready", pod)
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
