//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

func TestResize(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	from := 1
	cluster := n.Create(from, etcd36)
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	for _, size := range []int{3, 5, 3, 1} {
		before := cluster.Pods()
		reason := "Scaling up"
		if size < from {
			reason = "Scaling down"
		}
		resizing := cluster.Observe(v1beta2.ClusterConditionScaling)
		cluster.Resize(size)
		cluster.WaitSettled()
		if want := fmt.Sprintf("%s: Current cluster size: %d, desired cluster size: %d", reason, from, size); !slices.Contains(resizing(), want) {
			t.Errorf("condition Scaling was never True with %q; it was %q", want, resizing())
		}
		checkKept(t, before, cluster.Pods(), min(from, size))
		from = size
	}
	cluster.VerifyWrites(writer)
	cluster.WaitEvents(5, "New Member Added")
	cluster.WaitEvents(4, "Member Removed")
}

// checkKept checks that resizing replaced no member.
func checkKept(t *testing.T, before, after []*corev1.Pod, want int) {
	t.Helper()
	kept := 0
	for _, pod := range after {
		if slices.ContainsFunc(before, func(old *corev1.Pod) bool { return old.UID == pod.UID }) {
			kept++
		}
	}
	if kept != want {
		t.Errorf("%d of %d pods were kept, want %d", kept, len(before), want)
	}
}
