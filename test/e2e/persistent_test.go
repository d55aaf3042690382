//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// onVolumes is a cluster whose members keep their data on volumes.
func onVolumes(size int, version string) *v1beta2.EtcdCluster {
	cluster := object("etcd", size, version)
	cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Mi")}},
	}}
	return cluster
}

// All pods are lost at once, as in a power cut: the cluster recovers by itself, with its
// members and every acknowledged write. Then single members are lost, the leader too, and
// recover in the same way.
func TestVolumesOutliveTheirPods(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.CreateObject(onVolumes(3, etcd35))
	before := cluster.WaitSettled()
	volumes := claims(t, n, cluster)
	if names := podNamesOf(cluster); !slices.Equal(slices.Sorted(maps.Keys(volumes)), names) {
		t.Fatalf("volumes %v of pods %v", volumes, names)
	}
	writer := cluster.StartWriter()
	cluster.Put("kept", "yes")
	seeds := countSeeds(cluster)

	pods := cluster.Pods()
	for _, pod := range pods {
		n.DeletePod(pod)
	}
	sameMembers(t, before, cluster.WaitSettled(pods...))
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("the key written before all pods were lost is %q", got)
	}
	for _, choose := range []func() *corev1.Pod{cluster.Follower, cluster.Leader} {
		victim := choose() // the leader may change with each loss
		n.DeletePod(victim)
		sameMembers(t, before, cluster.WaitSettled(victim))
	}
	cluster.VerifyWrites(writer)
	if again := seeds(); len(again) > 0 {
		t.Errorf("pods %v start a new cluster", again)
	}
	if now := claims(t, n, cluster); fmt.Sprint(now) != fmt.Sprint(volumes) {
		t.Errorf("volumes %v became %v", volumes, now)
	}
	if replaced := cluster.EventMessages("Replacing Dead Member"); len(replaced) > 0 {
		t.Errorf("members with their data were replaced: %q", replaced)
	}
}

// A volume is deleted after its member was removed, and with the EtcdCluster.
func TestVolumesGoWithTheirMembers(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.CreateObject(onVolumes(1, ""))
	cluster.WaitSettled()
	first := claims(t, n, cluster)
	cluster.Resize(3)
	cluster.WaitSettled()
	waitOwnVolumes(t, n, cluster)
	cluster.Put("kept", "yes")
	cluster.Resize(1)
	cluster.WaitSettled()
	waitOwnVolumes(t, n, cluster) // the last member's volume is left
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("the key is %q; the first volumes were %v", got, first)
	}
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
	harness.Wait(t, "the volume goes with the cluster", harness.Settle, func(ctx context.Context) error {
		left, err := findClaims(ctx, n, cluster)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("volumes %v are left", left)
		}
		return err
	})
}

// A member that restarts without its data could vote twice. It must not start, and the status
// must say so. Without its volume, the operator replaces it.
func TestMemberDoesNotComeBackWithoutItsData(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.CreateObject(onVolumes(3, ""))
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	victim := cluster.Follower()
	n.StopOperator()
	n.DeletePod(victim)
	waitEnded(t, victim)
	wipe(t, n, victim.Name)
	n.StartOperator()
	cluster.WaitWarning(harness.Settle, "Member Stuck", victim.Name, "holds no data of etcd")
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) // two of three serve
	// The message asks for this.
	if err := n.Kube.CoreV1().PersistentVolumeClaims(n.Name).Delete(t.Context(), victim.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	stuck, err := n.Kube.CoreV1().Pods(n.Name).Get(t.Context(), victim.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.DeletePod(stuck)
	cluster.WaitSettled(stuck)
	if slices.Contains(podNamesOf(cluster), victim.Name) {
		t.Errorf("%s is there again, without its data", victim.Name)
	}
	cluster.VerifyWrites(writer)
}

// waitEnded waits for the end of etcd in a pod that was deleted without grace: Kubernetes
// removes such a pod's object before.
func waitEnded(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	harness.Wait(t, "the end of etcd in "+pod.Name, harness.Settle, func(context.Context) error {
		if pid, err := harness.Process(pod, "etcd"); err == nil {
			return fmt.Errorf("process %d runs", pid)
		}
		return nil
	})
}

// wipe empties a volume with a pod of its own.
func wipe(t *testing.T, n *harness.Namespace, claim string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "wipe"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "wipe", Image: "busybox:1.35", Command: []string{"rm", "-rf", "/data/data"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	pods := n.Kube.CoreV1().Pods(n.Name)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, "the volume is wiped", harness.Settle, func(ctx context.Context) error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && now.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("pod %s is %s", pod.Name, now.Status.Phase)
		}
		return err
	})
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// claims returns the UIDs of the cluster's volumes by name.
func claims(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) map[string]string {
	t.Helper()
	found, err := findClaims(t.Context(), n, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func findClaims(ctx context.Context, n *harness.Namespace, cluster *harness.Cluster) (map[string]string, error) {
	list, err := n.Kube.CoreV1().PersistentVolumeClaims(n.Name).List(ctx, metav1.ListOptions{LabelSelector: "app=etcd,etcd_cluster=" + cluster.Name})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, claim := range list.Items {
		if claim.DeletionTimestamp == nil {
			found[claim.Name] = string(claim.UID)
		}
	}
	return found, nil
}

// waitOwnVolumes waits until each member has its volume, and there is no other.
func waitOwnVolumes(t *testing.T, n *harness.Namespace, cluster *harness.Cluster) {
	t.Helper()
	harness.Wait(t, "a volume for each member", harness.Settle, func(ctx context.Context) error {
		found, err := findClaims(ctx, n, cluster)
		if names := slices.Sorted(maps.Keys(found)); err == nil && !slices.Equal(names, podNamesOf(cluster)) {
			err = fmt.Errorf("volumes %v, pods %v", names, podNamesOf(cluster))
		}
		return err
	})
}

func podNamesOf(cluster *harness.Cluster) []string {
	var names []string
	for _, pod := range cluster.Pods() {
		names = append(names, pod.Name)
	}
	return slices.Sorted(slices.Values(names))
}

func sameMembers(t *testing.T, before, after []harness.Member) {
	t.Helper()
	for i := range before {
		if before[i].ID != after[i].ID || before[i].Name != after[i].Name || before[i].ClusterID != after[i].ClusterID {
			t.Errorf("member %s (%x) became %s (%x)", before[i].Name, before[i].ID, after[i].Name, after[i].ID)
		}
	}
}
