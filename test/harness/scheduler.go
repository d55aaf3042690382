// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unschedulable finds the number of cordoned nodes in the scheduler's report of a pod.
var unschedulable = regexp.MustCompile(`(\d+) node\(s\) were unschedulable`)

// awaitScheduler waits until the scheduler knows so many nodes as cordoned. It reads nodes and pods
// by watches of their own, so a pod that was made after the cordon can come before it. A pod that
// fits on no node shows what the scheduler knows.
func (n *Namespace) awaitScheduler(cordoned int) {
	n.t.Helper()
	pods := n.Kube.CoreV1().Pods(n.Name)
	Wait(n.t, "a scheduler that knows the cordoned nodes", Settle, func(ctx context.Context) error {
		probe, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "fits-nowhere-"},
			Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{{
					Name: "none", Image: "none",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}},
					SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					},
				}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		defer func() {
			ctx, cancel := later(n.t.Context(), callTimeout)
			defer cancel()
			if err := pods.Delete(ctx, probe.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				n.t.Errorf("delete pod %s: %v", probe.Name, err)
			}
		}()
		report := ""
		for report == "" {
			if probe, err = pods.Get(ctx, probe.Name, metav1.GetOptions{}); err != nil {
				return err
			}
			for _, c := range probe.Status.Conditions {
				if c.Type == corev1.PodScheduled {
					report = c.Message
				}
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
		if match := unschedulable.FindStringSubmatch(report); cordoned > 0 && (match == nil || match[1] != strconv.Itoa(cordoned)) {
			return fmt.Errorf("%d nodes are cordoned, and the scheduler says: %s", cordoned, report)
		}
		return nil
	})
}
