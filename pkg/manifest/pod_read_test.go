// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A service mesh adds its proxy as the first init container, which never ends. The first member of
// a copy seemed to wait for the proxy forever, and writes never stopped.
func TestASidecarIsNotWhatAPodPrepares(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{
		{Name: "mesh-init"}, {Name: "mesh-proxy", RestartPolicy: &always}, {Name: CopyContainer}, {Name: CheckDNSContainer},
	}}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, step := range []struct {
		statuses []corev1.ContainerStatus
		want     string
	}{
		{nil, "mesh-init"},
		{[]corev1.ContainerStatus{{Name: "mesh-init", State: ended}}, "mesh-proxy"},
		{[]corev1.ContainerStatus{{Name: "mesh-init", State: ended}, {Name: "mesh-proxy", State: runs, Started: new(false)}}, "mesh-proxy"},
		{[]corev1.ContainerStatus{{Name: "mesh-init", State: ended}, {Name: "mesh-proxy", State: runs, Started: new(true)}}, CopyContainer},
		{[]corev1.ContainerStatus{
			{Name: "mesh-init", State: ended}, {Name: "mesh-proxy", State: runs, Started: new(true)},
			{Name: CopyContainer, State: ended}, {Name: CheckDNSContainer, State: ended},
		}, ""},
	} {
		pod.Status.InitContainerStatuses = step.statuses
		if got := PodStateOf(pod).Preparing; got != step.want {
			t.Errorf("with %d statuses it prepares %q, want %q", len(step.statuses), got, step.want)
		}
	}
}
