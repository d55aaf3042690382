// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// environment is name=value of each variable for etcd, in order.
func environment(c corev1.Container) string {
	var list []string
	for _, e := range c.Env {
		if e.Name == startedEnv {
			continue // the launcher's
		}
		list = append(list, e.Name+"="+e.Value)
	}
	return strings.Join(list, " ")
}

// ofEtcd is the command of etcd in a container, without the launcher.
func ofEtcd(c corev1.Container) []string {
	return c.Command[slices.Index(c.Command, "--")+1:]
}

// variables reads name=value.
func variables(list ...string) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, s := range list {
		name, value, _ := strings.Cut(s, "=")
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	return env
}

// etcd doesn't start where a variable and a flag say the same, and takes the last
// of two flags.
func TestTheEnvironmentAndArgumentsOfEtcd(t *testing.T) {
	const learners, snapshots = "ETCD_MAX_LEARNERS=6", "ETCD_SNAPSHOT_COUNT=10000"
	for name, tc := range map[string]struct {
		env  []corev1.EnvVar
		args []string
		want string // environment
		last string // arguments, behind the operator's
	}{
		"nothing": {want: learners + " " + snapshots},
		"variables come behind ours, in order": {
			env:  variables("ETCD_LOG_LEVEL=debug", "ETCD_AUTO_COMPACTION_RETENTION=1"),
			want: learners + " " + snapshots + " ETCD_LOG_LEVEL=debug ETCD_AUTO_COMPACTION_RETENTION=1",
		},
		"the snapshot count is the user's": {
			env:  variables("ETCD_SNAPSHOT_COUNT=5000"),
			want: learners + " ETCD_SNAPSHOT_COUNT=5000",
		},
		"the number of learners is not": {
			env:  variables("ETCD_MAX_LEARNERS=1", "ETCD_LOG_LEVEL=debug"),
			want: learners + " " + snapshots + " ETCD_LOG_LEVEL=debug",
		},
		"nor by a flag": {
			args: []string{"--max-learners=1"},
			want: learners + " " + snapshots,
		},
		"a snapshot count by a flag": {
			args: []string{"--snapshot-count=5000"},
			want: learners,
			last: "--snapshot-count=5000",
		},
		"a flag wins over the same variable": {
			env:  variables("ETCD_QUOTA_BACKEND_BYTES=1"),
			args: []string{"--quota-backend-bytes=2"},
			want: learners + " " + snapshots,
			last: "--quota-backend-bytes=2",
		},
		"variables of our flags are left out": {
			env:  variables("ETCD_NAME=x", "ETCD_DATA_DIR=/tmp", "ETCD_LISTEN_METRICS_URLS=http://x", "ETCD_LOG_LEVEL=debug"),
			want: learners + " " + snapshots + " ETCD_LOG_LEVEL=debug",
		},
		"our flags are not repeated, with however many dashes": {
			args: []string{"--name=x", "-data-dir=/tmp", "--initial-cluster-state=new", "--listen-metrics-urls=http://x", "--log-level=debug"},
			want: learners + " " + snapshots,
			last: "--log-level=debug",
		},
		"the user's arguments stay in order": {
			args: []string{"--log-level=debug", "--auto-compaction-mode=revision", "--auto-compaction-retention=1000"},
			want: learners + " " + snapshots,
			last: "--log-level=debug --auto-compaction-mode=revision --auto-compaction-retention=1000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours := joiner(clusterWith("3.6.16", nil)).build(t).Spec.Containers[0].Command
			pod := joiner(clusterWith("3.6.16", &api.PodPolicy{EtcdEnv: tc.env, ExtraArgs: tc.args})).build(t)
			c := pod.Spec.Containers[0]
			if got := environment(c); got != tc.want {
				t.Errorf("environment %s, want %s", got, tc.want)
			}
			command := strings.Join(c.Command, " ")
			if want := strings.TrimSpace(strings.Join(ours, " ") + " " + tc.last); command != want {
				t.Errorf("command %s, want %s", command, want)
			}
			if p := PodStateOf(pod); p.Seed || !p.ManyLearners || len(p.InitialCluster) != 2 {
				t.Errorf("the plan reads %+v from it", p)
			}
		})
	}
}

// TLS can be turned off by no flag, nor turned on where the cluster has none of
// it and members would not reach each other.
func TestCertificatesAreNotTheUsersFlags(t *testing.T) {
	args := []string{"--client-cert-auth=false", "--trusted-ca-file=/tmp/ca", "--peer-client-cert-auth=false", "--peer-cert-file=/tmp/crt"}
	obj := clusterWithTLS("peer", "server", "operator")
	before := fmt.Sprint(joiner(obj).build(t).Spec.Containers[0].Command)
	obj.Spec.Pod = &api.PodPolicy{ExtraArgs: args}
	if after := fmt.Sprint(joiner(obj).build(t).Spec.Containers[0].Command); after != before {
		t.Errorf("command %s, was %s", after, before)
	}
}

func TestAnEnvironmentFromElsewhereIsKept(t *testing.T) {
	ref := corev1.EnvVar{Name: "ETCD_LOG_LEVEL", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "level"},
	}}
	env := joiner(clusterWith("3.6.16", &api.PodPolicy{EtcdEnv: []corev1.EnvVar{ref}})).build(t).Spec.Containers[0].Env
	if last := env[len(env)-1]; last.ValueFrom == nil || last.ValueFrom.ConfigMapKeyRef.Name != "settings" {
		t.Errorf("environment %v", env)
	}
}

// The list of reserved settings in the API has every setting of the operator. Otherwise the
// operator would silently ignore a user's setting.
func TestEverySettingOfTheOperatorIsRefusedAtAdmission(t *testing.T) {
	for name, s := range shapes() {
		obj := s.obj.DeepCopy()
		obj.Spec.Pod = nil // the user's own
		c := shape{obj, s.pod, s.certs}.build(t).Spec.Containers[0]
		for _, arg := range ofEtcd(c)[1:] {
			mustBeRefused(t, name, &api.PodPolicy{ExtraArgs: []string{arg}})
			mustBeRefused(t, name, &api.PodPolicy{EtcdEnv: variables(envOf(arg) + "=x")})
		}
	}
	mustBeRefused(t, "learners", &api.PodPolicy{EtcdEnv: variables(maxLearnersEnv + "=1")})
	mustBeRefused(t, "learners", &api.PodPolicy{ExtraArgs: []string{"--max-learners=1"}})
}

func mustBeRefused(t *testing.T, name string, policy *api.PodPolicy) {
	t.Helper()
	errs := api.ValidateEtcdCluster(clusterWith("3.6.16", policy))
	if !slices.ContainsFunc(api.Reserved(), func(r api.ReservedSettings) bool {
		return slices.ContainsFunc(errs, func(err *field.Error) bool {
			return strings.Contains(err.Detail, r.ArgumentsRefused()) || strings.Contains(err.Detail, r.EnvRefused())
		})
	}) {
		t.Errorf("%s: nobody refuses %v %v as reserved: %v", name, policy.EtcdEnv, policy.ExtraArgs, errs)
	}
}
