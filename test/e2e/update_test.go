//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// All members follow an edit of their template, one at a time and under writes. On volumes,
// they keep their identity.
func TestEditIsRolledOut(t *testing.T) {
	t.Parallel()
	for version, kind := range map[string]string{etcd35: "emptyDir", etcd37: "volumes"} {
		persistent := kind == "volumes"
		t.Run(version+"/"+kind, func(t *testing.T) {
			t.Parallel()
			n := harness.New(t)
			wanted := object("etcd", 3, version)
			if persistent {
				wanted = onVolumes(3, version)
			}
			cluster := n.CreateObject(wanted)
			before := cluster.WaitSettled()
			writer := cluster.StartWriter()
			serving := cluster.WatchServing()
			updating := cluster.Observe(v1beta2.ClusterConditionUpdating)
			cluster.Update(func(s *v1beta2.ClusterSpec) {
				if s.Pod == nil {
					s.Pod = &v1beta2.PodPolicy{}
				}
				s.Pod.EtcdEnv = []corev1.EnvVar{{Name: "ETCD_AUTO_COMPACTION_RETENTION", Value: "7"}}
			})
			waitPods(t, cluster, "all members have the new environment", func(pod *corev1.Pod) error {
				if !slices.ContainsFunc(pod.Spec.Containers[0].Env, func(e corev1.EnvVar) bool {
					return e.Name == "ETCD_AUTO_COMPACTION_RETENTION" && e.Value == "7"
				}) {
					return errors.New("it has the old environment")
				}
				return nil
			})
			after := cluster.WaitSettled()
			if persistent {
				sameMembers(t, before, after)
			}
			if seen := strings.Join(updating(), "; "); !strings.Contains(seen, "of 3 members follow the spec") {
				t.Errorf("condition Updating was %s", seen)
			}
			quorumWasKept(t, serving)
			for _, reason := range []string{"Update Started", "Update Finished"} {
				cluster.WaitEvents(1, reason)
			}
			cluster.VerifyWrites(writer)
		})
	}
}

// Labels and annotations change without a restart, and only those of the spec.
func TestLabelsAreEditedInPlace(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	wanted := object("etcd", 1, "")
	wanted.Spec.Pod = &v1beta2.PodPolicy{Labels: map[string]string{"team": "a", "tier": "gold"}, Annotations: map[string]string{"note": "x"}}
	cluster := n.CreateObject(wanted)
	cluster.WaitSettled()
	before := cluster.Pods()[0]
	cluster.Update(func(s *v1beta2.ClusterSpec) {
		s.Pod.Labels = map[string]string{"team": "b"}
		s.Pod.Annotations = map[string]string{"other": "y"}
	})
	waitPods(t, cluster, "labels and annotations are those of the spec", func(pod *corev1.Pod) error {
		_, gold := pod.Labels["tier"]
		_, note := pod.Annotations["note"]
		if pod.Labels["team"] != "b" || gold || pod.Annotations["other"] != "y" || note || pod.Labels["app"] != "etcd" {
			return fmt.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
		}
		return nil
	})
	if now := cluster.Pods()[0]; now.UID != before.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod was restarted or recreated for a label")
	}
}

// waitPods waits until all of a cluster's pods, as many as its size, pass a check.
func waitPods(t *testing.T, cluster *harness.Cluster, what string, check func(*corev1.Pod) error) {
	t.Helper()
	harness.Wait(t, what, 2*harness.Settle, func(context.Context) error {
		pods := cluster.Pods()
		object := cluster.Object()
		if object == nil || len(pods) != object.Spec.Size {
			return fmt.Errorf("%d pods of %v", len(pods), object)
		}
		for _, pod := range pods {
			if err := check(pod); err != nil {
				return fmt.Errorf("pod %s: %w", pod.Name, err)
			}
		}
		return nil
	})
}
