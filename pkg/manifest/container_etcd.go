// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// EtcdContainer is the container in which etcd runs.
	EtcdContainer = "etcd"

	// maxLearnersEnv is a setting of etcd 3.6 and later; older versions ignore it. A version
	// change in place keeps the environment. The plan relies on the setting, so users must not
	// set it.
	maxLearnersEnv    = "ETCD_MAX_LEARNERS"
	snapshotCountEnv  = "ETCD_SNAPSHOT_COUNT"
	snapshotCountFlag = "snapshot-count"
)

// Image returns the image of a version of etcd. The spec's digest is that of the spec's
// version. With literal, the tag has no leading v unless the spec's version has one.
func Image(spec *api.ClusterSpec, version string, literal bool) string {
	tag := "v" + version
	if literal && !strings.HasPrefix(spec.Version, "v") {
		tag = version
	}
	if digest := spec.Digest(); digest != "" && version == spec.EffectiveVersion() {
		tag += "@" + digest
	}
	return spec.EffectiveRepository() + ":" + tag
}

// etcdProcess is the container that runs etcd.
func etcdProcess(obj *api.EtcdCluster, policy *api.PodPolicy, p MemberPod, version etcd.Version) corev1.Container {
	ports := []corev1.ContainerPort{
		{Name: "peer", ContainerPort: peerPort},
		{Name: "client", ContainerPort: ClientPort},
	}
	if version.HasMetricsListener() {
		ports = append(ports, corev1.ContainerPort{Name: "metrics", ContainerPort: MetricsPort})
	}
	command := etcdCommand(obj, policy, p, version)
	c := corev1.Container{
		Name:         EtcdContainer,
		Image:        Image(&obj.Spec, version.String(), p.LiteralTag),
		Command:      command,
		Ports:        ports,
		Env:          etcdEnv(policy, command),
		Resources:    policy.Resources,
		VolumeMounts: append([]corev1.VolumeMount{{Name: dataVolume, MountPath: dataMountPath}}, certMounts(&obj.Spec)...),
		// etcd writes the reason of its end to standard error.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
	}
	setProbes(&c, version)
	if launches(obj, p) {
		launch(&c, obj, policy, p)
	}
	return c
}

// etcdCommand returns the operator's flags before the user's. etcd uses the last value of a
// flag, so the user's must not repeat the operator's.
func etcdCommand(obj *api.EtcdCluster, policy *api.PodPolicy, p MemberPod, version etcd.Version) []string {
	n := NamesOf(obj)
	command := []string{
		"/usr/local/bin/etcd",
		"--data-dir=" + dataDir,
		"--name=" + p.Name,
		"--initial-advertise-peer-urls=" + n.PeerURL(p.Name),
		fmt.Sprintf("--listen-peer-urls=%s://0.0.0.0:%d", scheme(n.peerTLS), peerPort),
		fmt.Sprintf("--listen-client-urls=%s://0.0.0.0:%d", scheme(n.clientTLS), ClientPort),
		"--advertise-client-urls=" + n.ClientURL(p.Name),
		"--initial-cluster=" + p.InitialCluster.String(),
	}
	if p.Seed {
		command = append(command, "--initial-cluster-state=new", "--initial-cluster-token="+p.Token)
	} else {
		command = append(command, "--initial-cluster-state=existing")
	}
	if version.HasMetricsListener() {
		command = append(command, fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", MetricsPort))
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

// etcdEnv returns the operator's settings before the user's. If the user sets one, in the
// environment or by a flag, only the user's stays. etcd does not start with a variable that a
// flag overrides.
func etcdEnv(policy *api.PodPolicy, command []string) []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: maxLearnersEnv, Value: strconv.Itoa(ManyLearners)}}
	users := slices.DeleteFunc(slices.Clone(policy.EtcdEnv), func(e corev1.EnvVar) bool { return e.Name == maxLearnersEnv })
	if !slices.ContainsFunc(users, func(e corev1.EnvVar) bool { return e.Name == snapshotCountEnv }) {
		env = append(env, corev1.EnvVar{Name: snapshotCountEnv, Value: strconv.Itoa(etcd.SnapshotCount)})
	}
	env = append(env, users...)
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(command[1:], func(arg string) bool { return envOf(arg) == e.Name })
	})
}

// UnreadSnapshotCount stands for a snapshot count that is not in the pod itself.
const UnreadSnapshotCount = math.MaxUint64

// snapshotCount returns after how many entries the etcd of a container takes a snapshot of its raft
// state; 0: after etcd's default. A variable can refer to another object, or to another variable.
func snapshotCount(c corev1.Container) uint64 {
	text := ""
	for _, e := range c.Env {
		if e.Name == snapshotCountEnv && e.ValueFrom != nil {
			return UnreadSnapshotCount
		}
		if e.Name == snapshotCountEnv {
			text = e.Value
		}
	}
	for _, arg := range c.Command {
		if flagOf(arg) == snapshotCountFlag {
			_, text, _ = strings.Cut(arg, "=")
		}
	}
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 0, 64) // as etcd does
	if err != nil {
		return UnreadSnapshotCount
	}
	return n
}

// flagOf returns the name of the flag in an argument; etcd accepts one dash or two.
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

// envOf returns the environment variable for an argument's flag.
func envOf(arg string) string {
	return "ETCD_" + strings.ToUpper(strings.ReplaceAll(flagOf(arg), "-", "_"))
}

// ManyLearners is the operator's limit of learners, if etcd has one. All members must agree on
// it: each checks it when it applies a membership change.
const ManyLearners = 6
