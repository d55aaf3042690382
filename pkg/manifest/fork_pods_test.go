// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodsOfTheForkAreRead(t *testing.T) {
	for _, pod := range ofTheFork[corev1.Pod](t, "pods") {
		obj := clusterOf(t, &pod)
		p := PodStateOf(&pod)
		if p.Version != "3.5.35" || p.Image != Image(&obj.Spec, p.Version, false) || !p.Ready || !p.Running || p.Legacy == obj.Spec.Persistent() || p.Claimed != obj.Spec.Persistent() {
			t.Errorf("%s: %+v", pod.Name, p)
		}
		if p.RunsAs.String() != "12379:12379" || p.DataOwner.Known || p.ShellProbes {
			t.Errorf("%s runs as %s, its data belongs to %s, its probes need a shell: %t", pod.Name, p.RunsAs, p.DataOwner, p.ShellProbes)
		}
	}
}

// Releases 1.0 to 1.2 of the fork, and v0.9.4, probed etcd through a shell.
func TestProbesThatNeedAShellAreSeen(t *testing.T) {
	probe := func(command ...string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}}
	}
	for name, c := range map[string]struct {
		etcd corev1.Container
		want bool
	}{
		"none":                {corev1.Container{}, false},
		"a shell":             {corev1.Container{LivenessProbe: probe("/bin/sh", "-ec", "etcdctl get foo")}, true},
		"a shell for one":     {corev1.Container{LivenessProbe: probe("etcdctl"), ReadinessProbe: probe("sh", "-c", "true")}, true},
		"a program of etcd's": {corev1.Container{LivenessProbe: probe("etcdctl", "endpoint", "status")}, false},
		"an empty command":    {corev1.Container{LivenessProbe: probe()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.etcd.Name = EtcdContainer
			if got := PodStateOf(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c.etcd}}}).ShellProbes; got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A change of the image leaves the probes, so an earlier release must serve them.
func TestProbesThatNeedLivezAreSeen(t *testing.T) {
	for version, want := range map[string]bool{"3.4.28": false, "3.4.29": true, "3.5.10": false, "3.5.11": true, "3.7.3": true} {
		if got := PodStateOf(joiner(clusterWith(version, nil)).build(t)).LivezProbes; got != want {
			t.Errorf("%s: %t", version, got)
		}
	}
}
