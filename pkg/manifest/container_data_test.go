// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestAContainerServesTheDataAsTheUserOfEtcd(t *testing.T) {
	obj := testCluster()
	obj.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{Member: &api.MemberSecret{ServerSecret: "server"}, OperatorSecret: "operator"}}
	pod, err := BuildPod(obj, MemberPod{Name: "c-a", Version: "3.6.16"}, CertForms{}, "operator")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ServeData(obj, pod, 1, "operator:v1")
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "serve-data-1" || c.Image != "operator:v1" || c.SecurityContext == nil || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("the container is %+v", c)
	}
	var mounted []string
	for _, m := range c.VolumeMounts {
		mounted = append(mounted, m.Name)
		if !m.ReadOnly {
			t.Errorf("it may write to %s", m.Name)
		}
	}
	if !slices.Equal(mounted, []string{dataVolume, ServerCert.volume}) || !strings.Contains(strings.Join(c.Command, " "), "-cert=/etc/etcdtls/member/server-tls/server.crt") {
		t.Errorf("it mounts %v, and runs %v", mounted, c.Command)
	}
}

func TestTheStateOfAContainerThatServesData(t *testing.T) {
	named := func(names ...string) (list []corev1.EphemeralContainer) {
		for _, n := range names {
			list = append(list, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: n}})
		}
		return list
	}
	state := func(name string, s corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: s}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no data"}}
	for name, test := range map[string]struct {
		pod  corev1.Pod
		want DataServer
	}{
		"none":           {corev1.Pod{}, DataServer{}},
		"of another one": {corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: named("debugger")}}, DataServer{}},
		"not seen":       {corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: named("serve-data-1")}}, DataServer{Begun: 1}},
		"no image": {corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: named("serve-data-1")}, Status: corev1.PodStatus{EphemeralContainerStatuses: []corev1.ContainerStatus{
			state("serve-data-1", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no"}}),
		}}}, DataServer{Begun: 1, Problem: "ImagePullBackOff: no"}},
		"the second runs": {corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: named("serve-data-1", "serve-data-2")}, Status: corev1.PodStatus{EphemeralContainerStatuses: []corev1.ContainerStatus{
			state("serve-data-1", ended), state("serve-data-2", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
		}}}, DataServer{Begun: 2, Running: true}},
		"ended": {corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: named("serve-data-1")}, Status: corev1.PodStatus{EphemeralContainerStatuses: []corev1.ContainerStatus{
			state("serve-data-1", ended),
		}}}, DataServer{Begun: 1, Ended: true, Problem: "ended with exit code 1: no data"}},
	} {
		if got := dataServerOf(&test.pod); got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
