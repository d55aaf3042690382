//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The units: the time to start etcd by hand on this machine. Their pods have the same probes
// as the operator's pods, so that Ready means the same.

func barePod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"unit": name}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{etcdContainer("--data-dir=/var/etcd/data", "--listen-metrics-urls=http://0.0.0.0:2381")},
			Volumes:                      []corev1.Volume{dataVolume()},
		},
	}
}

// staticMembers is the headless Service and the StatefulSet of a cluster whose members know
// each other from the start.
func staticMembers(name, namespace string) (*corev1.Service, *appsv1.StatefulSet) {
	labels := map[string]string{"unit": name}
	var initial []string
	for i := range 3 {
		initial = append(initial, fmt.Sprintf("%s-%d=http://%s-%d.%s.%s.svc:2380", name, i, name, i, name, namespace))
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: labels},
	}
	host := fmt.Sprintf("$(NAME).%s.%s.svc", name, namespace)
	container := etcdContainer(
		"--name=$(NAME)", "--data-dir=/var/etcd/data",
		"--initial-advertise-peer-urls=http://"+host+":2380", "--listen-peer-urls=http://0.0.0.0:2380",
		"--advertise-client-urls=http://"+host+":2379", "--listen-client-urls=http://0.0.0.0:2379",
		"--listen-metrics-urls=http://0.0.0.0:2381",
		"--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-state=new",
	)
	container.Env = []corev1.EnvVar{{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	return service, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name, Replicas: new(int32(3)), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: new(false),
					Containers:                   []corev1.Container{container},
					Volumes:                      []corev1.Volume{dataVolume()},
				},
			},
		},
	}
}

func etcdContainer(flags ...string) corev1.Container {
	get := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(2381)}}
	}
	return corev1.Container{
		Name: "etcd", Image: "quay.io/coreos/etcd:v" + etcd36, Command: append([]string{"/usr/local/bin/etcd"}, flags...),
		VolumeMounts:   []corev1.VolumeMount{{Name: "etcd-data", MountPath: "/var/etcd"}},
		StartupProbe:   &corev1.Probe{ProbeHandler: get("/livez"), PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 1800},
		ReadinessProbe: &corev1.Probe{ProbeHandler: get("/readyz"), PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 3},
	}
}

func dataVolume() corev1.Volume {
	return corev1.Volume{Name: "etcd-data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// ready reports whether a unit has its number of ready pods.
func ready(n *harness.Namespace, unit string, want int) func(context.Context) error {
	return func(context.Context) error {
		got := 0
		for _, pod := range n.Pods() {
			if pod.Labels["unit"] == unit && harness.Ready(pod) {
				got++
			}
		}
		if got != want {
			return fmt.Errorf("%d of %d pods are ready", got, want)
		}
		return nil
	}
}

// gone reports whether no pod of a unit is left.
func gone(n *harness.Namespace, unit string) func(context.Context) error {
	return func(context.Context) error {
		for _, pod := range n.Pods() {
			if pod.Labels["unit"] == unit {
				return fmt.Errorf("pod %s is there", pod.Name)
			}
		}
		return nil
	}
}
