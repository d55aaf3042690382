//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// A cluster as v0.9.4 creates it, whose pods are never restarted and probed by etcdctl: the
// operator adopts it unchanged, and manages it from then on. (v0.9.4 itself does not run on
// today's Kubernetes.)
func TestClusterOfV094IsTakenOver(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	n.StopOperator()
	cluster := n.CreateObject(object("old", 3, etcd35))
	old, err := n.EtcdClusters.EtcdV1beta2().EtcdClusters(n.Name).Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range servicesOfV094(old) {
		if _, err := n.Kube.CoreV1().Services(n.Name).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	members := []string{"old-0000000000", "old-0000000001", "old-0000000002"}
	for _, name := range members {
		if _, err := n.Kube.CoreV1().Pods(n.Name).Create(t.Context(), podOfV094(old, name, members), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitPods(t, cluster, "all pods of the old cluster are ready", func(pod *corev1.Pod) error {
		if !harness.Ready(pod) {
			return errors.New("it is not ready")
		}
		return nil
	})
	old.Status = v1beta2.ClusterStatus{
		Phase: v1beta2.ClusterPhaseRunning, Size: 3, ServiceName: "old-client", ClientPort: 2379, CurrentVersion: etcd35,
		Members: v1beta2.MembersStatus{Ready: members},
	}
	if _, err := n.EtcdClusters.EtcdV1beta2().EtcdClusters(n.Name).UpdateStatus(t.Context(), old, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := cluster.Pods()
	cluster.Put("kept", "yes")
	writer := cluster.StartWriter()

	n.StartOperator()
	cluster.WaitSettled()
	for i, pod := range cluster.Pods() {
		if pod.UID != before[i].UID {
			t.Errorf("pod %s was recreated when the operator took over", pod.Name)
		}
	}
	waitPods(t, cluster, "the old pods state the image of the spec, so that an edit of the repository is seen", func(pod *corev1.Pod) error {
		if got := pod.Annotations["etcd.database.coreos.com/image"]; got != v1beta2.DefaultRepository+":v"+etcd35 {
			return fmt.Errorf("it states %q", got)
		}
		return nil
	})
	lost := cluster.Follower()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)

	// A pod that is never restarted would lose its data with another image, so a new member
	// replaces each.
	cluster.SetVersion(etcd36)
	waitPods(t, cluster, "all members run the new version in pods of today", func(pod *corev1.Pod) error {
		switch {
		case slices.Contains(members, pod.Name):
			return errors.New("it is one of the old pods")
		case pod.Annotations["etcd.version"] != etcd36:
			return errors.New("it runs " + pod.Annotations["etcd.version"])
		}
		return nil
	})
	cluster.WaitSettled()
	cluster.VerifyWrites(writer)
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("the key of the old cluster is %q", got)
	}
}

func hostOf(cluster *v1beta2.EtcdCluster, member string) string {
	return member + "." + cluster.Name + "." + cluster.Namespace + ".svc"
}

func ownersOf(cluster *v1beta2.EtcdCluster) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1beta2.SchemeGroupVersion.WithKind(v1beta2.EtcdClusterResourceKind))}
}

func clusterLabels(cluster *v1beta2.EtcdCluster) map[string]string {
	return map[string]string{"app": "etcd", "etcd_cluster": cluster.Name}
}

func servicesOfV094(cluster *v1beta2.EtcdCluster) []*corev1.Service {
	client := corev1.ServicePort{Name: "client", Port: 2379, TargetPort: intstr.FromInt32(2379), Protocol: corev1.ProtocolTCP}
	peer := corev1.ServicePort{Name: "peer", Port: 2380, TargetPort: intstr.FromInt32(2380), Protocol: corev1.ProtocolTCP}
	service := func(name, ip string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: clusterLabels(cluster), OwnerReferences: ownersOf(cluster)},
			Spec:       corev1.ServiceSpec{Selector: clusterLabels(cluster), Ports: ports, ClusterIP: ip, PublishNotReadyAddresses: true},
		}
	}
	return []*corev1.Service{service(cluster.Name, corev1.ClusterIPNone, client, peer), service(cluster.Name+"-client", "", client)}
}

// podOfV094 is a pod of a cluster whose members all start together, instead of joining one
// after the other as in v0.9.4. An etcd that joins asks the others at its start; in a pod that
// is never restarted, one late answer would end it for good.
func podOfV094(cluster *v1beta2.EtcdCluster, name string, members []string) *corev1.Pod {
	var initial []string
	for _, m := range members {
		initial = append(initial, m+"=http://"+hostOf(cluster, m)+":2380")
	}
	command := []string{
		"/usr/local/bin/etcd", "--data-dir=/var/etcd/data", "--name=" + name,
		"--initial-advertise-peer-urls=http://" + hostOf(cluster, name) + ":2380",
		"--listen-peer-urls=http://0.0.0.0:2380", "--listen-client-urls=http://0.0.0.0:2379",
		"--advertise-client-urls=http://" + hostOf(cluster, name) + ":2379",
		"--initial-cluster=" + strings.Join(initial, ","), "--initial-cluster-state=new",
		"--initial-cluster-token=5d2b1f6e-0000-4000-8000-000000000000",
	}
	labels := clusterLabels(cluster)
	labels["etcd_node"] = name
	probe := func(threshold, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
				Command: []string{"etcdctl", "--endpoints=http://localhost:2379", "get", "foo"},
			}},
			InitialDelaySeconds: 1, TimeoutSeconds: 10, PeriodSeconds: period, FailureThreshold: threshold,
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: ownersOf(cluster), Annotations: map[string]string{"etcd.version": etcd35}},
		Spec: corev1.PodSpec{
			Hostname: name, Subdomain: cluster.Name, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
			InitContainers: []corev1.Container{{
				Name: "check-dns", Image: "busybox:1.35",
				Command: []string{"/bin/sh", "-c", "while ! nslookup " + hostOf(cluster, name) + ".cluster.local; do sleep 1; done"},
			}},
			Containers: []corev1.Container{{
				Name: "etcd", Image: v1beta2.DefaultRepository + ":v" + etcd35, Command: command,
				Ports:         []corev1.ContainerPort{{Name: "server", ContainerPort: 2380}, {Name: "client", ContainerPort: 2379}},
				VolumeMounts:  []corev1.VolumeMount{{Name: "etcd-data", MountPath: "/var/etcd"}},
				LivenessProbe: probe(3, 60), ReadinessProbe: probe(3, 5),
			}},
			Volumes: []corev1.Volume{{Name: "etcd-data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}
