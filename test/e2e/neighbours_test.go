//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

func object(name string, size int, version string) *v1beta2.EtcdCluster {
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1beta2.ClusterSpec{Size: size, Version: version},
	}
}

func TestTwoClustersAtOnce(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	// One name begins with the other: neither may take the other's pods.
	a := n.CreateObject(object("data", 3, etcd36))
	b := n.CreateObject(object("data-b", 3, etcd35))
	inA, inB := a.WaitSettled(), b.WaitSettled()
	if inA[0].ClusterID == inB[0].ClusterID {
		t.Errorf("both have cluster ID %x", inA[0].ClusterID)
	}
	writerA, writerB := a.StartWriter(), b.StartWriter()
	a.Resize(1)
	lost := b.Follower()
	n.DeletePod(lost)
	a.WaitSettled()
	b.WaitSettled(lost)
	a.VerifyWrites(writerA)
	a.Delete()
	a.WaitGone(harness.Settle)
	b.WaitSettled()
	b.VerifyWrites(writerB)
}

// A cluster that is stuck delays no other one.
func TestStuckClusterDelaysNoOther(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	stuck := n.CreateObject(object("unpullable", 3, "3.6.99"))
	dead := n.CreateObject(object("dead", 3, ""))
	dead.WaitSettled()
	for _, pod := range dead.Pods()[:2] {
		n.DeletePod(pod)
	}
	start := time.Now()
	for _, version := range []string{etcd35, etcd37} {
		name := map[string]string{etcd35: "first", etcd37: "second"}[version]
		healthy := n.CreateObject(object(name, 3, version))
		healthy.WaitSettled()
		lost := healthy.Leader()
		n.DeletePod(lost)
		healthy.WaitSettled(lost)
		healthy.Delete()
		healthy.WaitGone(harness.Settle)
	}
	t.Logf("two clusters created, mended and deleted beside two stuck ones in %s", time.Since(start).Round(time.Second))
	harness.Wait(t, "the stuck cluster tells its state", harness.Settle, func(context.Context) error {
		if s := stuck.Status(); s.Phase == "" {
			return fmt.Errorf("phase is empty")
		}
		return nil
	})
	stuck.Delete()
	stuck.WaitGone(harness.Settle)
	dead.Delete()
	dead.WaitGone(harness.Settle)
}
