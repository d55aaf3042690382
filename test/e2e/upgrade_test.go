//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

func TestUpgrade(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, etcd35)
	members := cluster.WaitSettled()
	writer := cluster.StartWriter()
	pods := cluster.Pods()
	from, told := etcd35, 0
	for _, to := range []string{etcd36, etcd37} {
		watch := cluster.WatchRoll(t.Context())
		upgrading := cluster.Observe(v1beta2.ClusterConditionUpgrading)
		cluster.SetVersion(to)
		after := cluster.WaitSettled()
		cluster.WaitEvent("Upgrade Finished", to) // and so all earlier events
		if err := watch.Check(); err != nil {
			t.Errorf("%s → %s: %v", from, to, err)
		}
		if want := "Cluster upgrading: upgrading to " + to; !slices.Contains(upgrading(), want) {
			t.Errorf("condition Upgrading was never True with %q; it was %q", want, upgrading())
		}
		for i, m := range after {
			if m.ID != members[i].ID || m.Name != members[i].Name {
				t.Errorf("member %s (%x) became %s (%x)", members[i].Name, members[i].ID, m.Name, m.ID)
			}
		}
		for i, pod := range cluster.Pods() {
			if pod.UID != pods[i].UID {
				t.Errorf("pod %s was recreated", pod.Name)
			}
			cluster.WaitEvent("Member Upgraded", fmt.Sprintf("Member %s upgraded from %s to %s", pod.Name, from, to))
		}
		told += 3
		cluster.WaitEvents(told, "Member Upgraded")
		from = to
	}
	cluster.VerifyWrites(writer)
}

func TestUpgradeOfASingleMember(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(1, etcd36)
	cluster.WaitSettled()
	cluster.Put("kept", "yes")
	cluster.SetVersion(etcd37)
	cluster.WaitSettled()
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("the key written before the upgrade is %q", got)
	}
}

// A version whose image can't be pulled stops at most one member, and the user can revert it.
func TestBadVersionCostsOneMemberAndCanBeTakenBack(t *testing.T) {
	t.Parallel()
	const bad = "3.6.99"
	n := harness.New(t)
	cluster := n.Create(3, etcd36)
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	serving := cluster.WatchServing()
	cluster.SetVersion(bad)
	harness.Wait(t, "one member with the bad image", harness.Settle, func(context.Context) error {
		if got := withVersion(cluster, bad); got != 1 {
			return fmt.Errorf("%d pods have version %s", got, bad)
		}
		return nil
	})
	cluster.WaitWarning(harness.Settle, bad)
	harness.Holds(t, "no second member is touched", 20*time.Second, func(context.Context) error {
		if got := withVersion(cluster, bad); got != 1 {
			return fmt.Errorf("%d pods have version %s", got, bad)
		}
		return nil
	})
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) // two of three serve
	cluster.SetVersion(etcd36)
	cluster.WaitSettled()
	quorumWasKept(t, serving)
	cluster.VerifyWrites(writer)
}

func withVersion(cluster *harness.Cluster, version string) int {
	n := 0
	for _, image := range images(cluster) {
		if image == "quay.io/coreos/etcd:v"+version {
			n++
		}
	}
	return n
}

func images(cluster *harness.Cluster) map[types.UID]string {
	images := map[types.UID]string{}
	for _, pod := range cluster.Pods() {
		images[pod.UID] = pod.Spec.Containers[0].Image
	}
	return images
}
