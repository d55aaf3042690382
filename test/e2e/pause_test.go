//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// A paused cluster does not change, whatever the spec says and whatever is lost. When the
// pause ends, the operator catches up.
func TestPause(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, etcd36)
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.Paused = true })
	harness.Wait(t, "status.controlPaused", harness.Settle, func(context.Context) error {
		if !cluster.Status().ControlPaused {
			return fmt.Errorf("it is false")
		}
		return nil
	})

	lost := cluster.Follower()
	before := images(cluster)
	delete(before, lost.UID)
	n.DeletePod(lost)
	cluster.SetVersion(etcd37)
	harness.Wait(t, "the pod deleted by hand is gone", harness.Settle, func(context.Context) error { return sameImages(cluster, before) })
	harness.Holds(t, "nothing changes while paused", 20*time.Second, func(context.Context) error {
		if !cluster.Status().ControlPaused {
			return fmt.Errorf("status.controlPaused is false")
		}
		return sameImages(cluster, before)
	})

	// An operator that starts during the pause leaves the cluster alone too.
	n.CrashOperator()
	harness.Holds(t, "nothing changes after the operator's restart", 10*time.Second, func(context.Context) error { return sameImages(cluster, before) })
	n.WaitOperator()

	cluster.Update(func(spec *v1beta2.ClusterSpec) { spec.Paused = false })
	cluster.WaitSettled(lost)
	kept := 0
	for uid := range images(cluster) {
		if _, ok := before[uid]; ok {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d of the 2 members that ran while paused are still there", kept)
	}
	cluster.VerifyWrites(writer)
}
