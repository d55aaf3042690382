//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The Deployments of v0.9.4, with this release in them, are replaced by one command and restored
// by another. A client writes all the time, no pod of etcd notices, and each operator replaces a
// lost member. (Neither v0.9.4 nor the fork runs on today's Kubernetes of these tests.)
func TestOperatorsAreAdoptedAndGivenBack(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, etcd36)
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	account := func() string {
		deployment, err := n.Kube.AppsV1().Deployments(n.Name).Get(t.Context(), "etcd-operator", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return deployment.Spec.Template.Spec.ServiceAccountName
	}
	// A problem, because the other tests' operators run elsewhere and are of the old form.
	adopt := []string{"adopt", "--force", "--yes"}

	before := restartsOf(cluster.Pods())
	old := account()
	mustKubectlEtcd(t, n, "scale deployment/etcd-operator to 0", append(adopt, "--dry-run")...)
	if got := account(); got != old {
		t.Errorf("a dry run changed the ServiceAccount of the operator from %q to %q", old, got)
	}
	mustKubectlEtcd(t, n, "3 of 3 members ready", adopt...)
	if got := account(); got != "etcd-operator" {
		t.Errorf("after the move the operator has the ServiceAccount %q", got)
	}
	checkUnmoved(t, before, cluster.Pods())
	lost := cluster.Follower()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)

	before = restartsOf(cluster.Pods())
	mustKubectlEtcd(t, n, "configmap/etcd-operator-adoption", append(adopt, "--back")...)
	n.WaitOperator()
	if got := account(); got != old {
		t.Errorf("after the way back the operator has the ServiceAccount %q, want %q", got, old)
	}
	checkUnmoved(t, before, cluster.Pods())
	if _, err := n.Kube.CoreV1().ConfigMaps(n.Name).Get(t.Context(), "etcd-operator-adoption", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the record of the move after the way back: %v", err)
	}
	lost = cluster.Follower()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)
	cluster.VerifyWrites(writer)
	code, _, errOut := kubectlEtcd(t, n, append(adopt, "--back")...)
	if code == 0 || !strings.Contains(errOut, "nothing was moved here") {
		t.Errorf("a second way back: exit code %d, %s", code, errOut)
	}
}

// restartsOf returns the restarts of etcd by the UIDs of its pods.
func restartsOf(pods []*corev1.Pod) map[string]int32 {
	restarts := map[string]int32{}
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			restarts[string(pod.UID)] += c.RestartCount
		}
	}
	return restarts
}

// checkUnmoved checks that the same pods run, without a restart.
func checkUnmoved(t *testing.T, before map[string]int32, now []*corev1.Pod) {
	t.Helper()
	for uid, restarts := range restartsOf(now) {
		if was, there := before[uid]; !there || was != restarts {
			t.Errorf("a pod was recreated or restarted: there before %t, %d restarts then, %d now", there, was, restarts)
		}
	}
	if len(now) != len(before) {
		t.Errorf("%d pods before, %d now", len(before), len(now))
	}
}
