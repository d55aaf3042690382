//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// Another cluster goes through its whole life while two are stuck: no work on one cluster waits
// for another.
func TestStuckClusterDelaysNoOther(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	unpullable := n.CreateObject(object("unpullable", 3, "3.6.99"))
	dead := n.CreateObject(object("dead", 3, ""))
	dead.WaitSettled()
	dead.LoseMembers(dead.Pods()[:2]...)
	stuck := func(context.Context) error {
		if s := unpullable.Status(); s.Phase != v1beta2.ClusterPhaseCreating || s.ReadyMembers > 0 {
			return fmt.Errorf("%s: phase %q, %d ready members", unpullable.Name, s.Phase, s.ReadyMembers)
		}
		if c := dead.Condition(v1beta2.ClusterConditionAvailable); c.Status != corev1.ConditionFalse || c.Reason != "Quorum lost" {
			return fmt.Errorf("%s: condition Available is %+v", dead.Name, c)
		}
		return nil
	}
	unpullable.WaitWarning(harness.Settle, "Member Stuck")
	harness.Wait(t, "two clusters are stuck", harness.Settle, stuck)
	healthy := n.CreateObject(object("beside", 3, ""))
	healthy.WaitSettled()
	lost := healthy.Leader()
	n.DeletePod(lost)
	healthy.WaitSettled(lost)
	healthy.Delete()
	healthy.WaitGone(harness.Settle)
	if err := stuck(t.Context()); err != nil {
		t.Errorf("the life of cluster %s proves nothing, for one beside it was not stuck: %v", healthy.Name, err)
	}
	unpullable.Delete()
	unpullable.WaitGone(harness.Settle)
	dead.Delete()
	dead.WaitGone(harness.Settle)
}
