//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The etcd releases that the local Kubernetes holds, one for each minor.
const (
	etcd35 = "3.5.35"
	etcd36 = "3.6.16"
	etcd37 = "3.7.3"
)

// Other tests create the releases that are not the default: TestEditIsRolledOut, TestResize.
func TestCreate(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	members := cluster.WaitSettled()
	if got := cluster.Status().CurrentVersion; got != v1beta2.DefaultVersion {
		t.Errorf("currentVersion is %q, want %q", got, v1beta2.DefaultVersion)
	}
	seeds := 0
	for i, pod := range cluster.Pods() {
		seeds += checkPod(t, n.Name, cluster.Object(), pod, v1beta2.DefaultVersion)
		if want := fmt.Sprintf("http://%s.etcd.%s.svc:2380", pod.Name, n.Name); members[i].PeerURL != want {
			t.Errorf("peer URL of %s is %q, want %q", pod.Name, members[i].PeerURL, want)
		}
		cluster.WaitEvent("New Member Added", "New member "+pod.Name+" added to cluster")
	}
	if seeds != 1 {
		t.Errorf("%d pods start a new cluster, want 1", seeds)
	}
	checkServices(t, n, cluster)
	cluster.Put("greeting", "hello")
	if got := cluster.Get("greeting"); got != "hello" {
		t.Errorf("get after put: %q", got)
	}
}

// checkPod compares a pod with v0.9.4's, and returns 1 for the seed's pod.
func checkPod(t *testing.T, namespace string, object *v1beta2.EtcdCluster, pod *corev1.Pod, version string) (seeds int) {
	t.Helper()
	suffix, ok := strings.CutPrefix(pod.Name, object.Name+"-")
	if !ok || len(suffix) != 10 {
		t.Errorf("pod name %q is not <cluster>-<10 characters>", pod.Name)
	}
	for key, want := range map[string]string{"app": "etcd", "etcd_cluster": object.Name, "etcd_node": pod.Name} {
		if got := pod.Labels[key]; got != want {
			t.Errorf("pod %s: label %s=%q, want %q", pod.Name, key, got, want)
		}
	}
	if got := pod.Annotations["etcd.version"]; got != version {
		t.Errorf("pod %s: annotation etcd.version=%q, want %q", pod.Name, got, version)
	}
	if pod.Spec.Hostname != pod.Name || pod.Spec.Subdomain != object.Name {
		t.Errorf("pod %s: hostname %q, subdomain %q", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("pod %s: a service account token is mounted", pod.Name)
	}
	if !ownedBy(pod.OwnerReferences, object) {
		t.Errorf("pod %s: owners are %+v", pod.Name, pod.OwnerReferences)
	}
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].Name != "check-dns" {
		t.Errorf("pod %s: init containers are %+v", pod.Name, pod.Spec.InitContainers)
	}
	if len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Name != "etcd" {
		t.Fatalf("pod %s: containers are %+v", pod.Name, pod.Spec.Containers)
	}
	etcd := pod.Spec.Containers[0]
	if want := "quay.io/coreos/etcd:v" + version; etcd.Image != want {
		t.Errorf("pod %s: image %q, want %q", pod.Name, etcd.Image, want)
	}
	if !slices.ContainsFunc(etcd.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "etcd-data" && m.MountPath == "/var/etcd" }) {
		t.Errorf("pod %s: volume mounts are %+v", pod.Name, etcd.VolumeMounts)
	}
	return checkCommand(t, namespace, object.Name, pod.Name, append(etcd.Command, etcd.Args...))
}

func checkCommand(t *testing.T, namespace, cluster, name string, command []string) (seeds int) {
	t.Helper()
	if command[0] == "/var/check-dns/etcd-launcher" { // it becomes etcd
		command = command[slices.Index(command, "--")+1:]
	}
	if command[0] != "/usr/local/bin/etcd" {
		t.Errorf("pod %s runs %q", name, command[0])
	}
	flags := map[string]string{}
	for _, flag := range command[1:] {
		key, value, _ := strings.Cut(flag, "=")
		flags[key] = value
	}
	host := fmt.Sprintf("%s.%s.%s.svc", name, cluster, namespace)
	for key, want := range map[string]string{
		"--data-dir":                    "/var/etcd/data",
		"--name":                        name,
		"--initial-advertise-peer-urls": "http://" + host + ":2380",
		"--listen-peer-urls":            "http://0.0.0.0:2380",
		"--listen-client-urls":          "http://0.0.0.0:2379",
		"--advertise-client-urls":       "http://" + host + ":2379",
	} {
		if got := flags[key]; got != want {
			t.Errorf("pod %s: %s=%q, want %q", name, key, got, want)
		}
	}
	self := name + "=http://" + host + ":2380"
	if !slices.Contains(strings.Split(flags["--initial-cluster"], ","), self) {
		t.Errorf("pod %s: --initial-cluster=%q lacks %q", name, flags["--initial-cluster"], self)
	}
	token, hasToken := flags["--initial-cluster-token"]
	switch state := flags["--initial-cluster-state"]; state {
	case "new":
		if len(token) != 36 {
			t.Errorf("pod %s: --initial-cluster-token=%q is no UUID", name, token)
		}
		if flags["--initial-cluster"] != self {
			t.Errorf("pod %s: the seed's --initial-cluster is %q", name, flags["--initial-cluster"])
		}
		return 1
	case "existing":
		if hasToken {
			t.Errorf("pod %s: --initial-cluster-token on a member that joins", name)
		}
	default:
		t.Errorf("pod %s: --initial-cluster-state=%q", name, state)
	}
	return 0
}

func checkServices(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) {
	t.Helper()
	var peer, client *corev1.Service
	harness.Wait(t, "both services", harness.Settle, func(context.Context) error {
		if peer, client = n.Service(cluster.Name), n.Service(cluster.Name+"-client"); peer == nil || client == nil {
			return fmt.Errorf("peer service %v, client service %v", peer, client)
		}
		return nil
	})
	for _, service := range []*corev1.Service{peer, client} {
		if !ownedBy(service.OwnerReferences, cluster.Object()) {
			t.Errorf("service %s: owners are %+v", service.Name, service.OwnerReferences)
		}
		want := map[string]string{"app": "etcd", "etcd_cluster": cluster.Name}
		for key, value := range want {
			if service.Spec.Selector[key] != value || service.Labels[key] != value {
				t.Errorf("service %s: selector %v, labels %v, want %v in both", service.Name, service.Spec.Selector, service.Labels, want)
			}
		}
	}
	if peer.Spec.ClusterIP != corev1.ClusterIPNone || !peer.Spec.PublishNotReadyAddresses {
		t.Errorf("peer service: clusterIP %q, publishNotReadyAddresses %t", peer.Spec.ClusterIP, peer.Spec.PublishNotReadyAddresses)
	}
	if client.Spec.Type != corev1.ServiceTypeClusterIP || client.Spec.PublishNotReadyAddresses {
		t.Errorf("client service: type %s, publishNotReadyAddresses %t", client.Spec.Type, client.Spec.PublishNotReadyAddresses)
	}
	if got := ports(peer); !slices.Equal(got, []int32{2379, 2380}) {
		t.Errorf("peer service: ports %v", got)
	}
	if got := ports(client); !slices.Equal(got, []int32{2379}) {
		t.Errorf("client service: ports %v", got)
	}
}

func ports(service *corev1.Service) []int32 {
	var ports []int32
	for _, port := range service.Spec.Ports {
		ports = append(ports, port.Port)
	}
	slices.Sort(ports)
	return ports
}

// With a busyboxImage, the init container does not check the membership, so the operator adds
// a member before it creates the pod. If the operator dies in between, a member without a pod
// is left.
func TestBusyboxImage(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	want := object("etcd", 3, etcd35)
	want.Spec.Pod = &v1beta2.PodPolicy{BusyboxImage: "docker.io/library/busybox:1.35"}
	var cluster *harness.Cluster
	killAsAPodBecomesReady(t, n, func() { cluster = n.CreateObject(want) })
	cluster.WaitSettled()
	for _, pod := range cluster.Pods() {
		if got := pod.Spec.InitContainers[0].Image; got != want.Spec.Pod.BusyboxImage {
			t.Errorf("check-dns of %s runs %s", pod.Name, got)
		}
	}
	lost := cluster.Follower()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)
	cluster.Resize(1)
	cluster.WaitSettled()
}

// killAsAPodBecomesReady starts a creation and crashes the operator as soon as a pod of etcd is ready.
func killAsAPodBecomesReady(t *testing.T, n *harness.Namespace, start func()) {
	t.Helper()
	now := make(chan string, 1)
	release := n.OnPod(func(pod *corev1.Pod) {
		if pod.Labels["app"] == "etcd" && harness.Ready(pod) {
			select {
			case now <- pod.Name:
			default: // the first is enough
			}
		}
	})
	defer release()
	start()
	var pod string
	harness.Wait(t, "a pod of etcd that is ready", harness.Settle, func(context.Context) error {
		select {
		case pod = <-now:
			return nil
		default:
			return errors.New("there is none")
		}
	})
	n.CrashOperator()
	t.Logf("the operator was killed when %s was ready", pod)
}

// countAllSeeds counts the pods that start a new cluster.
func countAllSeeds(cluster *harness.Cluster) int {
	seeds := 0
	for _, pod := range cluster.Pods() {
		if slices.Contains(pod.Spec.Containers[0].Command, "--initial-cluster-state=new") {
			seeds++
		}
	}
	return seeds
}
