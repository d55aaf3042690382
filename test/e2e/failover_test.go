//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

func TestLostMemberIsReplaced(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, etcd35)
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	follower := cluster.Follower()
	lose(t, n, cluster, follower)
	lose(t, n, cluster, cluster.Leader(), follower)
	cluster.VerifyWrites(writer)
}

// lose deletes a member's pod without grace and waits for a replacement. Members lost before
// must not return.
func lose(t *testing.T, n *harness.Namespace, cluster *harness.Cluster, pod *corev1.Pod, before ...*corev1.Pod) {
	t.Helper()
	n.DeletePod(pod)
	cluster.WaitSettled(append(before, pod)...)
	cluster.WaitEvent("Replacing Dead Member", "The dead member "+pod.Name+" is being replaced")
	cluster.WaitEvent("Member Removed", "Existing member "+pod.Name+" removed from the cluster")
}

// An end of etcd is no loss, by a crash or by a person: the member restarts in its pod with its data.
func TestCrashedMemberRestartsInPlace(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, etcd37)
	before := cluster.WaitSettled()
	writer := cluster.StartWriter()
	victim := cluster.Leader()
	cluster.CrashMember(victim)
	cluster.WaitRestarted(victim)
	stopByCommand(t, n, cluster, victim)
	after := cluster.WaitSettled()
	for i := range before {
		if before[i].ID != after[i].ID || before[i].Name != after[i].Name {
			t.Errorf("member %s (%x) became %s (%x)", before[i].Name, before[i].ID, after[i].Name, after[i].ID)
		}
	}
	if replaced := cluster.EventMessages("Replacing Dead Member"); len(replaced) > 0 {
		t.Errorf("a member that only restarted was replaced: %q", replaced)
	}
	cluster.VerifyWrites(writer)
}

// stopByCommand restarts etcd in a pod except one, by the command that the status names for a member
// in an emptyDir.
func stopByCommand(t *testing.T, n *harness.Namespace, cluster *harness.Cluster, except *corev1.Pod) {
	t.Helper()
	cluster.WaitSettled()
	pods := cluster.Pods()
	i := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Name != except.Name && manifest.PodStateOf(p).Launcher != "" })
	if i < 0 {
		t.Fatal("no other pod has the launcher")
	}
	n.Shell(fmt.Sprintf("kubectl exec %s -n %s -c etcd -- %s stop", pods[i].Name, n.Name, manifest.PodStateOf(pods[i]).Launcher))
	cluster.WaitRestarted(pods[i])
	for _, p := range cluster.Pods() {
		if s := p.Status.ContainerStatuses; p.UID == pods[i].UID && (s[0].LastTerminationState.Terminated == nil || s[0].LastTerminationState.Terminated.ExitCode != 0) {
			t.Errorf("etcd in pod %s has ended: %+v", p.Name, s[0].LastTerminationState)
		}
	}
}

func TestSingleMemberSurvivesACrash(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(1, "")
	before := cluster.WaitSettled()
	cluster.Put("kept", "yes")
	pod := cluster.Pods()[0]
	cluster.CrashMember(pod)
	cluster.WaitRestarted(pod)
	after := cluster.WaitSettled()
	if before[0].ID != after[0].ID || before[0].ClusterID != after[0].ClusterID {
		t.Errorf("member %x of cluster %x became %x of %x", before[0].ID, before[0].ClusterID, after[0].ID, after[0].ClusterID)
	}
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("the key written before the crash is %q", got)
	}
}
