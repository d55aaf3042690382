//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// A node is lost with a member, whose pod can't terminate. The restore does not wait forever,
// and reports what may still run there.
func TestNodeKilledIsNoObstacleToARestore(t *testing.T) {
	r := newRestores(t)
	cluster := r.Create(3, etcd36)
	members := r.backedUp(cluster, "etcd.backup")
	var alive []string
	for _, pod := range slices.Concat(r.Operators(), r.RestoreOperators()) {
		alive = append(alive, pod.Spec.NodeName)
	}
	pods := cluster.Pods()
	i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return !slices.Contains(alive, pod.Spec.NodeName) })
	if i < 0 {
		t.Fatalf("there is no node without an operator: %v", alive)
	}
	lost := pods[i]
	r.KillNode(lost.Spec.NodeName)
	restore := r.CreateRestore(r.spec(cluster.Name, "etcd.backup"))
	obj := restore.WaitSucceeded()
	cluster, restored := r.checkRestored(cluster.Name, obj, lost)
	now := slices.DeleteFunc(cluster.Pods(), func(pod *corev1.Pod) bool { return pod.UID == lost.UID })
	checkStrange(t, restored, now, members[i])
	harness.Wait(t, "event that reports "+lost.Name, 15*time.Second, func(context.Context) error {
		told := restore.EventMessages("Pod May Still Run")
		if !slices.ContainsFunc(told, func(message string) bool {
			return strings.Contains(message, lost.Name) && strings.Contains(message, lost.Spec.NodeName)
		}) {
			return fmt.Errorf("%q", told)
		}
		return nil
	})
	r.StartNode(lost.Spec.NodeName)
	cluster.WaitSettled(lost)
	if got := cluster.Get("kept"); got != "yes" || obj.Status.Phase != v1beta2.RestorePhaseSucceeded {
		t.Errorf("the key is %q", got)
	}
}
