// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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

// The node has long answered: another controller keeps the pod.
func TestAPodThatAFinalizerKeepsIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		finalizers []string
		deleted    bool
		phase      corev1.PodPhase
		want       string
	}{
		"it has ended":     {[]string{"example.com/audit", "example.com/log"}, true, corev1.PodFailed, "example.com/audit, example.com/log"},
		"it still runs":    {[]string{"example.com/audit"}, true, corev1.PodRunning, ""},
		"nobody keeps it":  {nil, true, corev1.PodFailed, ""},
		"it is not wanted": {[]string{"example.com/audit"}, false, corev1.PodFailed, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: c.finalizers}, Status: corev1.PodStatus{Phase: c.phase}}
		if c.deleted {
			pod.DeletionTimestamp = &metav1.Time{}
		}
		if got := PodStateOf(pod).KeptBy; got != c.want {
			t.Errorf("%s: kept by %q, want %q", name, got, c.want)
		}
	}
}

// The plan of an upgrade relies on the number after which etcd takes a snapshot.
func TestThePlanReadsTheSnapshotCount(t *testing.T) {
	elsewhere := corev1.EnvVar{Name: "ETCD_SNAPSHOT_COUNT", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "count"},
	}}
	for name, tc := range map[string]struct {
		env  []corev1.EnvVar
		args []string
		want uint64
	}{
		"the operator's":              {nil, nil, 10000},
		"by the variable":             {variables("ETCD_SNAPSHOT_COUNT=100000"), nil, 100000},
		"by the flag":                 {nil, []string{"--snapshot-count=100000"}, 100000},
		"in another base":             {nil, []string{"--snapshot-count=0x10000"}, 65536},
		"etcd's default":              {variables("ETCD_SNAPSHOT_COUNT=0"), nil, 0},
		"etcd ignores the variable":   {variables("ETCD_SNAPSHOT_COUNT="), nil, 0},
		"from a ConfigMap":            {[]corev1.EnvVar{elsewhere}, nil, UnreadSnapshotCount},
		"from another variable":       {variables("ETCD_SNAPSHOT_COUNT=$(COUNT)"), nil, UnreadSnapshotCount},
		"with which etcd can't start": {nil, []string{"--snapshot-count=often"}, UnreadSnapshotCount},
		"also with which it can't":    {nil, []string{"--snapshot-count=-1"}, UnreadSnapshotCount},
	} {
		t.Run(name, func(t *testing.T) {
			pod := joiner(clusterWith("3.6.16", &api.PodPolicy{EtcdEnv: tc.env, ExtraArgs: tc.args})).build(t)
			if got := PodStateOf(pod).SnapshotCount; got != tc.want {
				t.Errorf("the plan reads %d, want %d", got, tc.want)
			}
		})
	}
}

// The end stays known while etcd runs again for a moment.
func TestThePlanReadsWhenEtcdEnded(t *testing.T) {
	end := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: end}}
	for name, status := range map[string]corev1.ContainerStatus{
		"it has just ended": {State: ended},
		"the kubelet waits": {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: ended},
		"it runs again":     {State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: ended},
	} {
		status.Name = EtcdContainer
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}
		if got := PodStateOf(pod).Ended; !got.Equal(end.Time) {
			t.Errorf("%s: it ended at %v, want %v", name, got, end)
		}
	}
}
