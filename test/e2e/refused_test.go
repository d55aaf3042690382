//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// A quota leaves no space for the members. The operator reports it, retries as rarely as a
// person would, and continues when the quota is gone.
func TestQuotaIsToldAndHeals(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}
	if _, err := n.Kube.CoreV1().ResourceQuotas(n.Name).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, "quota in force", harness.Settle, func(ctx context.Context) error {
		live, err := n.Kube.CoreV1().ResourceQuotas(n.Name).Get(ctx, quota.Name, metav1.GetOptions{})
		if err == nil && len(live.Status.Used) == 0 {
			err = fmt.Errorf("nothing is counted")
		}
		return err
	})
	var mu sync.Mutex
	made := map[types.UID]string{}
	release := n.OnPod(func(pod *corev1.Pod) {
		if pod.Labels["app"] == "etcd" {
			mu.Lock()
			defer mu.Unlock()
			made[pod.UID] = pod.Name
		}
	})
	defer release()
	cluster := n.Create(3, "")
	waitRefused(t, cluster, "exceeded quota", "few-pods")
	harness.Holds(t, "no pods are made and thrown away", 20*time.Second, func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if len(made) > 1 { // the quota has room for the operator and for one more
			return fmt.Errorf("pods %v", made)
		}
		return nil
	})
	if err := n.Kube.CoreV1().ResourceQuotas(n.Name).Delete(t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitSettled()
	waitReasonGone(t, cluster)
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
