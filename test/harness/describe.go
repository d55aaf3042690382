// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// One line for each kind of object: the facts that a reader of a timeline needs.

func presence(gone bool) string {
	if gone {
		return "gone"
	}
	return "there"
}

func podLine(pod *corev1.Pod, gone bool) string {
	if gone {
		return "gone"
	}
	words := []string{string(pod.Status.Phase)}
	if Ready(pod) {
		words = append(words, "ready")
	}
	if pod.DeletionTimestamp != nil {
		words = append(words, "terminating")
	}
	if pod.Spec.NodeName != "" {
		words = append(words, "on "+pod.Spec.NodeName)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			words = append(words, "unschedulable: "+condition.Message)
		}
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		words = append(words, containerLine(status))
	}
	if container := etcdContainer(pod); container != nil {
		words = append(words, container.Image)
	}
	return strings.Join(words, ", ")
}

func containerLine(status corev1.ContainerStatus) string {
	state := "?"
	switch {
	case status.State.Running != nil:
		state = "running"
	case status.State.Waiting != nil:
		state = status.State.Waiting.Reason
	case status.State.Terminated != nil:
		state = fmt.Sprintf("%s (exit %d)", status.State.Terminated.Reason, status.State.Terminated.ExitCode)
	}
	if status.RestartCount > 0 {
		state += fmt.Sprintf(" after %d restarts", status.RestartCount)
	}
	return status.Name + " " + state
}

func clusterLine(cluster *v1beta2.EtcdCluster, gone bool) string {
	if gone {
		return "gone"
	}
	s := &cluster.Status
	words := []string{
		fmt.Sprintf("generation %d, seen %d", cluster.Generation, s.ObservedGeneration),
		fmt.Sprintf("want %d × %s", cluster.Spec.Size, cluster.Spec.EffectiveVersion()),
		fmt.Sprintf("phase %q", s.Phase),
		fmt.Sprintf("size %d, ready %d, unready %d", s.Size, len(s.Members.Ready), len(s.Members.Unready)),
		fmt.Sprintf("version %q → %q", s.CurrentVersion, s.TargetVersion),
	}
	if s.Reason != "" {
		words = append(words, fmt.Sprintf("reason %q", s.Reason))
	}
	if s.ControlPaused {
		words = append(words, "paused")
	}
	for _, c := range s.Conditions {
		words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(words, ", ")
}

func restoreLine(restore *v1beta2.EtcdRestore, gone bool) string {
	if gone {
		return "gone"
	}
	s := &restore.Status
	words := []string{
		fmt.Sprintf("generation %d, seen %d", restore.Generation, s.ObservedGeneration),
		fmt.Sprintf("phase %q, succeeded %t", s.Phase, s.Succeeded),
	}
	if s.Reason != "" {
		words = append(words, fmt.Sprintf("reason %q", s.Reason))
	}
	if restore.DeletionTimestamp != nil {
		words = append(words, "terminating")
	}
	return strings.Join(append(words, restore.Finalizers...), ", ")
}

// Ready reports whether a pod's condition Ready is true.
func Ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// etcdContainer returns the container named etcd, or nil.
func etcdContainer(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == "etcd" {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}
