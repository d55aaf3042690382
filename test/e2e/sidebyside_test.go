//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

const scopeAnnotation = "etcd.database.coreos.com/scope"

// bootstrappedOnce fails the test if more than one operator has created a cluster's members.
func bootstrappedOnce(cluster *harness.Cluster, size int) {
	cluster.WaitEvents(size, "New Member Added") // and so the earlier ones
	cluster.WaitEvents(1, "Bootstrapped")
}

// awaitWideLeader waits until a cluster-wide operator in one of the namespaces leads: that of
// the previous test may still be ending. Tests with such operators do not run side by side,
// since one operator works for all of them.
func awaitWideLeader(t *testing.T, namespaces ...*harness.Namespace) {
	t.Helper()
	harness.Wait(t, "a cluster-wide operator of this test leads", harness.Settle, func(ctx context.Context) error {
		lease, err := namespaces[0].Kube.CoordinationV1().Leases(metav1.NamespaceDefault).Get(ctx, "etcd-operator-cluster-wide", metav1.GetOptions{})
		if err != nil {
			return err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		for _, n := range namespaces {
			if strings.HasPrefix(holder, n.Name+"/") {
				return nil
			}
		}
		return fmt.Errorf("%q leads", holder)
	})
}

// A namespaced and a cluster-wide operator in one namespace: each cluster has one of them, and
// the annotation moves it to the other.
func TestClusterWideBesideNamespaced(t *testing.T) {
	n := harness.New(t)
	n.DeployBeside("-wide", "-cluster-wide")
	awaitWideLeader(t, n)
	wide := object("wide", 3, "")
	wide.Annotations = map[string]string{scopeAnnotation: "clusterwide"}
	ours, theirs := n.CreateObject(object("ours", 3, "")), n.CreateObject(wide)
	ours.WaitSettled()
	theirs.WaitSettled()
	bootstrappedOnce(ours, 3)
	bootstrappedOnce(theirs, 3)

	writer := ours.StartWriter()
	for _, move := range []string{"=clusterwide", "-", "=clusterwide"} {
		n.Shell("kubectl annotate etcd/ours " + scopeAnnotation + move)
		lost := ours.Follower()
		n.DeletePod(lost) // its current operator replaces it
		ours.WaitSettled(lost)
	}
	ours.WaitEvents(3, "Replacing Dead Member")
	ours.VerifyWrites(writer)
}

// Two cluster-wide operators in two namespaces: one works, and the other is ready to.
func TestClusterWideTwice(t *testing.T) {
	a, b := harness.New(t, "-cluster-wide"), harness.New(t, "-cluster-wide")
	awaitWideLeader(t, a, b)
	wide := object("wide", 3, "")
	wide.Annotations = map[string]string{scopeAnnotation: "clusterwide"}
	for _, n := range []*harness.Namespace{a, b} {
		cluster := n.CreateObject(wide.DeepCopy())
		cluster.WaitSettled()
		bootstrappedOnce(cluster, 3)
	}
	standing := 0
	for _, n := range []*harness.Namespace{a, b} {
		if strings.Contains(waitReadyz(t, n), "standing by for Lease default/etcd-operator-cluster-wide, which ") {
			standing++
		}
	}
	if standing == 0 {
		t.Error("no operator is a standby: two work on the same clusters")
	}
	// The leader, if it is one of these, stops.
	lease, err := a.Kube.CoordinationV1().Leases(metav1.NamespaceDefault).Get(t.Context(), "etcd-operator-cluster-wide", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		t.Fatalf("lease: %v, %+v", err, lease)
	}
	left := a
	if strings.HasPrefix(*lease.Spec.HolderIdentity, a.Name+"/") {
		a.StopOperator()
		left = b
	}
	cluster := left.Adopt("wide")
	lost := cluster.Follower()
	left.DeletePod(lost)
	cluster.WaitSettled(lost)
}

func names(pods []*corev1.Pod) []string {
	var list []string
	for _, pod := range pods {
		list = append(list, pod.Name)
	}
	return list
}
