// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/checkdns"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// launcherProgram is the copy of etcd-launcher that check-dns leaves for the etcd container.
const launcherProgram = startedMountPath + "/etcd-launcher"

// launches reports whether a member waits in its etcd container until the others expect it. The
// kubelet notices the end of an init container up to a second late. A member that has to
// resolve its own name waits for all in check-dns.
func launches(obj *api.EtcdCluster, p MemberPod) bool {
	return BusyboxImage(&obj.Spec) == "" && joins(obj, p) && !looksUpItself(p)
}

// launch makes the launcher the first process of the etcd container. It becomes etcd.
func launch(c *corev1.Container, obj *api.EtcdCluster, policy *api.PodPolicy, p MemberPod) {
	command := append([]string{launcherProgram, "launch"}, waitFlags(obj, p)...)
	if inMemory(policy, p) {
		command = append(command, "-started="+startedFile)
	}
	c.Command = slices.Concat(command, peerFlags(obj, p), []string{"--"}, c.Command)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: startedVolume, MountPath: startedMountPath})
	c.Env = append([]corev1.EnvVar{startedVariable()}, slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == startedEnv })...)
}

// launcherIn returns the path of the launcher in the etcd container of a pod; "" without one.
func launcherIn(pod *corev1.Pod) string {
	if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return isEtcd(c) && len(c.Command) > 0 && c.Command[0] == launcherProgram
	}) {
		return launcherProgram
	}
	return ""
}

// launcherWaits reports whether etcd has never run in a pod, according to the state of its etcd
// container and the note on it: the launcher waits, or has ended without starting etcd.
func launcherWaits(pod *corev1.Pod, s corev1.ContainerStatus) bool {
	if !mayBeLauncher(pod, s) {
		return false
	}
	ended := lastEnd(s)
	if ended == nil {
		return s.RestartCount == 0
	}
	return ended.ExitCode == checkdns.ExitNotStarted
}

// mayBeLauncher reports whether a pod has a launcher, and neither the note nor the startup probe
// shows that etcd has run after it.
func mayBeLauncher(pod *corev1.Pod, s corev1.ContainerStatus) bool {
	return launcherIn(pod) != "" && pod.Annotations[StartedAnnotation] == "" && (s.Started == nil || !*s.Started)
}
