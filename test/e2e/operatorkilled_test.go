//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

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
