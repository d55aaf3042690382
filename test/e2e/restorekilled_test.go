//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// restoreSteps are the phases with work.
var restoreSteps = []v1beta2.RestorePhase{
	v1beta2.RestorePhaseVerifying, v1beta2.RestorePhaseStopping, v1beta2.RestorePhaseCreating, v1beta2.RestorePhaseStarting, v1beta2.RestorePhaseGrowing,
}

// Whatever is killed in whatever step, the restore completes, and creates its cluster from the
// backup once. Each instance crashes once, which the kubelet restarts at once, and is replaced
// the next time.
func TestRestoreWhoseOperatorsAreKilledAtEachStep(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	cluster := r.Create(2, etcd36)
	r.backedUp(cluster, "etcd.backup")
	services := addresses(t, r.Namespace, cluster.Name)
	restore := r.CreateRestore(r.spec(cluster.Name, "etcd.backup"))
	for i, step := range restoreSteps {
		restore.AwaitPhase(step)
		if i%2 == 0 {
			r.CrashRestoreOperator()
			r.CrashOperator()
		} else {
			r.ReplaceRestoreOperator()
			r.ReplaceOperator()
		}
	}
	obj := restore.WaitSucceeded()
	cluster, _ = r.checkRestored(cluster.Name, obj)
	if got := addresses(t, r.Namespace, cluster.Name); !maps.Equal(got, services) {
		t.Errorf("Services %v became %v", services, got)
	}
	if seeds := countAllSeeds(cluster); seeds != 1 {
		t.Errorf("%d of the pods %v start a new cluster", seeds, podNamesOf(cluster))
	}
	all := slices.Concat([]v1beta2.RestorePhase{v1beta2.RestorePhaseNone}, restoreSteps, []v1beta2.RestorePhase{v1beta2.RestorePhaseSucceeded})
	if phases := restore.Phases(); !slices.Equal(phases, all) {
		t.Errorf("it went through %q, want each once, in order: %q", phases, all)
	}
}

// initContainer returns the state of an init container in a cluster's only pod.
func initContainer(cluster *harness.Cluster, name string) (*corev1.Pod, corev1.ContainerStatus, error) {
	for _, pod := range cluster.Pods() {
		for _, status := range pod.Status.InitContainerStatuses {
			if status.Name == name && pod.DeletionTimestamp == nil {
				return pod, status, nil
			}
		}
	}
	return nil, corev1.ContainerStatus{}, fmt.Errorf("no pod has an init container %s that the kubelet knows: %v", name, podNamesOf(cluster))
}

// The first member is lost in each way, from the start of its download on: its program, its
// pod, its etcd, and at last, before others join it, all its data.
func TestRestoreWhoseFirstMemberIsLost(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	cluster := r.Create(2, etcd36)
	r.backedUp(cluster, "etcd.backup")
	release := r.holdFetch()
	defer release()
	restore := r.CreateRestore(r.spec(cluster.Name, "etcd.backup"))
	fetching := func(other *corev1.Pod, restarts int32) *corev1.Pod {
		var found *corev1.Pod
		harness.Wait(t, "a first member that fetches the backup", harness.Settle, func(context.Context) error {
			pod, status, err := initContainer(cluster, "fetch-backup")
			if err != nil {
				return err
			}
			if status.State.Running == nil || status.RestartCount < restarts || other != nil && pod.UID == other.UID {
				return errors.New("it does not")
			}
			found = pod
			return nil
		})
		return found
	}
	pod := fetching(nil, 0)
	r.CrashContainer(pod, "etcd-operator")
	if again := fetching(nil, 1); again.UID != pod.UID {
		t.Errorf("the pod %s was replaced by %s when its container ended", pod.Name, again.Name)
	}
	r.DeletePod(pod)
	pod = fetching(pod, 0)
	grow := r.allowNoMorePods()
	release()
	restore.AwaitPhase(v1beta2.RestorePhaseGrowing)
	for _, pod := range cluster.Pods() { // the only copy of the data
		r.DeletePod(pod)
	}
	grow()
	obj := restore.WaitSucceeded()
	cluster, _ = r.checkRestored(cluster.Name, obj)
	if podNames := podNamesOf(cluster); slices.Contains(podNames, pod.Name) {
		t.Errorf("member %s, whose data were lost, is back among %v", pod.Name, podNames)
	}

	// After a completed restore, nothing is left that could restore a cluster without data
	// again.
	lost := cluster.Pods()
	for _, pod := range lost {
		r.DeletePod(pod)
	}
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "All members lost")
	harness.Holds(t, "no cluster starts by itself", 10*time.Second, func(context.Context) error {
		for _, pod := range cluster.Pods() {
			// A pod that was created to join while the second of the two still served waits
			// forever. A new cluster would begin with another pod.
			before := slices.ContainsFunc(lost, func(l *corev1.Pod) bool { return l.UID == pod.UID })
			if !before && slices.Contains(pod.Spec.Containers[0].Command, "--initial-cluster-state=new") {
				return fmt.Errorf("there is %s, which begins a cluster", pod.Name)
			}
		}
		if ready := cluster.Status().ReadyMembers; ready > 0 {
			return fmt.Errorf("%d members are ready", ready)
		}
		return nil
	})
}

// allowNoMorePods limits the namespace to its current number of pods, until it is released.
func (r *restores) allowNoMorePods() (release func()) {
	r.t.Helper()
	quotas := r.Kube.CoreV1().ResourceQuotas(r.Name)
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	quota, err := quotas.Create(r.t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-more"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		if err := quotas.Delete(r.t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Somebody deletes the namespace, with the operators in it, while the first member fetches the
// backup. Kubernetes deletes the pods first, and no finalizer of ours may block the rest.
func TestRestoreWhoseNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	cluster := r.Create(1, etcd36)
	r.backedUp(cluster, "etcd.backup")
	defer r.holdFetch()()
	restore := r.CreateRestore(r.spec(cluster.Name, "etcd.backup"))
	restore.AwaitPhase(v1beta2.RestorePhaseStarting)
	namespaces := r.Kube.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), r.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, "the namespace gone", harness.Settle, func(ctx context.Context) error {
		namespace, err := namespaces.Get(ctx, r.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is there: %+v", namespace.Status.Conditions)
		}
		return err
	})
}
