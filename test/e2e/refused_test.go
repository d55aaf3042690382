//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// waitRefused waits until status and an event say why Kubernetes accepts no pod.
func waitRefused(t *testing.T, cluster *harness.Cluster, words ...string) {
	t.Helper()
	harness.Wait(t, "status that reports the refusal", harness.Settle, func(context.Context) error {
		reason := cluster.Status().Reason
		for _, word := range words {
			if !strings.Contains(reason, word) {
				return fmt.Errorf("status.reason is %q", reason)
			}
		}
		return nil
	})
	cluster.WaitWarning(harness.Settle, append(words, "Pod Refused")...)
}

// waitReasonGone waits until the status no longer reports it.
func waitReasonGone(t *testing.T, cluster *harness.Cluster) {
	t.Helper()
	harness.Wait(t, "status without the refusal", harness.Settle, func(context.Context) error {
		if reason := cluster.Status().Reason; reason != "" {
			return fmt.Errorf("status.reason is %q", reason)
		}
		return nil
	})
}

func TestMissingPriorityClassIsToldAndHeals(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	object := object("etcd", 1, "")
	object.Spec.PriorityClassName = n.Name
	cluster := n.CreateObject(object)
	waitRefused(t, cluster, "no PriorityClass with name "+n.Name)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Value: 1000}
	if _, err := n.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Kube.SchedulingV1().PriorityClasses().Delete(context.WithoutCancel(t.Context()), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	cluster.WaitSettled()
	waitReasonGone(t, cluster)
}
