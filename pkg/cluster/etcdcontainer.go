// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	etcdContainer = "etcd"

	// maxLearnersEnv is a setting of etcd 3.6 and later; older ones don't read
	// it. The environment stays when the version is changed in place. The plan
	// counts on it, so users can't set it.
	maxLearnersEnv   = "ETCD_MAX_LEARNERS"
	snapshotCountEnv = "ETCD_SNAPSHOT_COUNT"
)

func image(spec *api.ClusterSpec, version string) string {
	return spec.EffectiveRepository() + ":v" + version
}

// etcdProcess is the container that runs etcd.
func etcdProcess(obj *api.EtcdCluster, policy *api.PodPolicy, p newPod, version etcd.Version) corev1.Container {
	ports := []corev1.ContainerPort{
		{Name: "peer", ContainerPort: peerPort},
		{Name: "client", ContainerPort: clientPort},
	}
	if version.HasMetricsListener() {
		ports = append(ports, corev1.ContainerPort{Name: "metrics", ContainerPort: metricsPort})
	}
	command := etcdCommand(obj, policy, p, version)
	c := corev1.Container{
		Name:         etcdContainer,
		Image:        image(&obj.Spec, version.String()),
		Command:      command,
		Ports:        ports,
		Env:          etcdEnv(policy, command),
		Resources:    policy.Resources,
		VolumeMounts: append([]corev1.VolumeMount{{Name: dataVolume, MountPath: dataMountPath}}, certMounts(&obj.Spec)...),
		// etcd says on standard error why it ends.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
	}
	setProbes(&c, version)
	return c
}

// etcdCommand gives the operator's flags first and the user's after them. etcd
// takes the last of a flag, so flags of the operator are left out of the user's.
func etcdCommand(obj *api.EtcdCluster, policy *api.PodPolicy, p newPod, version etcd.Version) []string {
	n := namesOf(obj)
	command := []string{
		"/usr/local/bin/etcd",
		"--data-dir=" + dataDir,
		"--name=" + p.name,
		"--initial-advertise-peer-urls=" + n.peerURL(p.name),
		fmt.Sprintf("--listen-peer-urls=%s://0.0.0.0:%d", scheme(n.peerTLS), peerPort),
		fmt.Sprintf("--listen-client-urls=%s://0.0.0.0:%d", scheme(n.clientTLS), clientPort),
		"--advertise-client-urls=" + n.clientURL(p.name),
		"--initial-cluster=" + p.initialCluster.String(),
	}
	if p.seed {
		command = append(command, "--initial-cluster-state=new", "--initial-cluster-token="+p.token)
	} else {
		command = append(command, "--initial-cluster-state=existing")
	}
	if version.HasMetricsListener() {
		command = append(command, fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", metricsPort))
	}
	command = append(command, certFlags(&obj.Spec)...)
	ours := flagsOf(command)
	for _, arg := range policy.ExtraArgs {
		if !slices.Contains(ours, flagOf(arg)) && envOf(arg) != maxLearnersEnv {
			command = append(command, arg)
		}
	}
	return command
}

// etcdEnv gives the operator's settings and then the user's. Where the user says
// something about a setting, in the environment or by a flag, only that is left:
// etcd does not start with a variable that a flag overrides.
func etcdEnv(policy *api.PodPolicy, command []string) []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: maxLearnersEnv, Value: strconv.Itoa(manyLearners)}}
	users := slices.DeleteFunc(slices.Clone(policy.EtcdEnv), func(e corev1.EnvVar) bool { return e.Name == maxLearnersEnv })
	if !slices.ContainsFunc(users, func(e corev1.EnvVar) bool { return e.Name == snapshotCountEnv }) {
		env = append(env, corev1.EnvVar{Name: snapshotCountEnv, Value: strconv.Itoa(etcd.SnapshotCount)})
	}
	env = append(env, users...)
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(command[1:], func(arg string) bool { return envOf(arg) == e.Name })
	})
}

// flagOf is the name of the flag that an argument sets; etcd takes one dash for
// two.
func flagOf(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return strings.TrimLeft(name, "-")
}

func flagsOf(command []string) []string {
	var flags []string
	for _, arg := range command[1:] {
		flags = append(flags, flagOf(arg))
	}
	return flags
}

// envOf is the environment variable by which etcd also takes an argument's flag.
func envOf(arg string) string {
	return "ETCD_" + strings.ToUpper(strings.ReplaceAll(flagOf(arg), "-", "_"))
}
