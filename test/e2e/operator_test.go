//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

func TestOperatorServesReadyzAndMetrics(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	waitReadyz(t, n)
	cluster := n.Create(1, "")
	cluster.WaitSettled()
	cluster.Resize(2)
	cluster.WaitSettled()
	waitMetrics(t, n,
		"etcd_operator_controller_clusters 1",
		"etcd_operator_controller_clusters_created 1",
		"etcd_operator_controller_clusters_modified ",
		"etcd_operator_controller_clusters_deleted 0",
		"etcd_operator_controller_clusters_failed 0",
		"etcd_operator_cluster_reconcile_duration_count",
	)
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
	waitMetrics(t, n, "etcd_operator_controller_clusters 0", "etcd_operator_controller_clusters_deleted 1")
}

// waitReadyz waits until the operator's /readyz reports ready, and returns the rest of its
// answer.
func waitReadyz(t *testing.T, n *harness.Namespace) (body string) {
	t.Helper()
	harness.Wait(t, "GET /readyz", harness.Settle, func(ctx context.Context) (err error) {
		var status int
		if status, body, err = n.FromOperator(ctx, "/readyz"); err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %q", status, body)
		}
		return err
	})
	return body
}

func waitMetrics(t *testing.T, n *harness.Namespace, want ...string) {
	t.Helper()
	harness.Wait(t, "metrics of the operator", harness.Settle, func(ctx context.Context) error {
		status, body, err := n.FromOperator(ctx, "/metrics")
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("GET /metrics: %d, %w", status, err)
		}
		for _, line := range want {
			if !strings.Contains(body, line) {
				return fmt.Errorf("no line with %q in:\n%s", line, ownMetrics(body))
			}
		}
		return nil
	})
}

func ownMetrics(body string) string {
	var own []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "etcd_operator_") {
			own = append(own, line)
		}
	}
	return strings.Join(own, "")
}

// Two operators of one namespace: one leads, the other is a standby and takes over.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	n.ScaleOperator(2)
	harness.Wait(t, "two operators ready", harness.Settle, func(context.Context) error {
		ready := 0
		for _, pod := range n.Operators() {
			if harness.Ready(pod) {
				ready++
			}
		}
		if ready != 2 {
			return fmt.Errorf("%d are ready", ready)
		}
		return nil
	})
	lease, err := n.Kube.CoordinationV1().Leases(n.Name).Get(t.Context(), "etcd-operator", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		t.Fatalf("lease etcd-operator: %v, %+v", err, lease)
	}
	leads := func(holder *string, pod *corev1.Pod) bool { return strings.Contains(ptr.Deref(holder, ""), pod.Name) }
	led := slices.DeleteFunc(n.Operators(), func(pod *corev1.Pod) bool { return !leads(lease.Spec.HolderIdentity, pod) })
	if len(led) != 1 {
		t.Fatalf("%q leads, of the operators %v", *lease.Spec.HolderIdentity, names(n.Operators()))
	}
	n.DeletePod(led[0])
	// A container may outlive its pod for a moment: the old operator may act until another one
	// leads.
	harness.Wait(t, "another operator leads", harness.Settle, func(ctx context.Context) error {
		now, err := n.Kube.CoordinationV1().Leases(n.Name).Get(ctx, "etcd-operator", metav1.GetOptions{})
		if err == nil && (ptr.Deref(now.Spec.HolderIdentity, "") == "" || leads(now.Spec.HolderIdentity, led[0])) {
			err = fmt.Errorf("%q does", ptr.Deref(now.Spec.HolderIdentity, ""))
		}
		return err
	})
	lost := cluster.Follower()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)
}

// Clusters with the scope annotation belong only to operators with -cluster-wide. This test
// runs alone: its operators would manage every annotated cluster.
func TestClusterWideScope(t *testing.T) {
	namespaced := harness.New(t)
	wide := object("wide", 1, "")
	wide.Annotations = map[string]string{"etcd.database.coreos.com/scope": "clusterwide"}
	ours := namespaced.CreateObject(object("ours", 1, ""))
	theirs := namespaced.CreateObject(wide)
	ours.WaitSettled()
	untouched := func(cluster *harness.Cluster) func(context.Context) error {
		return func(context.Context) error {
			if pods := cluster.Pods(); len(pods) > 0 {
				return fmt.Errorf("it has %d pods", len(pods))
			}
			if phase := cluster.Status().Phase; phase != v1beta2.ClusterPhaseNone {
				return fmt.Errorf("its phase is %q", phase)
			}
			return nil
		}
	}
	harness.Holds(t, "an operator of one namespace leaves a clusterwide cluster alone", 12*time.Second, untouched(theirs))

	everywhere := harness.New(t, "-cluster-wide")
	awaitWideLeader(t, everywhere)
	theirs.WaitSettled()
	alone := everywhere.CreateObject(object("alone", 1, ""))
	harness.Holds(t, "an operator of all namespaces leaves a cluster without the annotation alone", 12*time.Second, untouched(alone))
	theirs.Delete()
	theirs.WaitGone(harness.Settle)
	ours.WaitSettled()
}

// The operator deletes pods whose cluster is gone, and no others.
func TestOrphansAreCollected(t *testing.T) {
	t.Parallel()
	n := harness.New(t, "-gc-interval=3s")
	cluster := n.Create(1, "")
	cluster.WaitSettled()
	orphan := func(name string, owners ...metav1.OwnerReference) *corev1.Pod {
		pod, err := n.Kube.CoreV1().Pods(n.Name).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, OwnerReferences: owners,
				Labels: map[string]string{"app": "etcd", "etcd_cluster": "gone", "etcd_node": name},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "quay.io/coreos/etcd:v" + etcd36, Command: []string{"/usr/local/bin/etcd", "--data-dir=/tmp/data"}}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod
	}
	controller := true
	owned := orphan("gone-"+rand.String(10), metav1.OwnerReference{
		APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "EtcdCluster", Name: "gone", UID: "00000000-0000-0000-0000-000000000000", Controller: &controller,
	})
	foreign := orphan("foreign")
	harness.Wait(t, "the orphan is collected", harness.Settle, func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Pods(n.Name).Get(ctx, owned.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			return fmt.Errorf("%s is there", owned.Name)
		case !apierrors.IsNotFound(err):
			return err
		case !slices.ContainsFunc(n.Pods(), func(pod *corev1.Pod) bool { return pod.UID == foreign.UID }):
			return fmt.Errorf("the watch has not brought %s", foreign.Name)
		}
		return nil
	})
	harness.Holds(t, "what belongs to nobody is left alone", 8*time.Second, func(context.Context) error {
		for _, pod := range n.Pods() {
			if pod.UID == foreign.UID && pod.DeletionTimestamp == nil {
				return nil
			}
		}
		return fmt.Errorf("pod %s is gone", foreign.Name)
	})
	cluster.WaitSettled()
}
