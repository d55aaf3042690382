// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestCamelCase(t *testing.T) {
	for phrase, want := range map[string]string{
		"Quorum lost": "QuorumLost", "Cluster ID changed": "ClusterIDChanged", "Operator can't connect": "OperatorCantConnect", "": "",
	} {
		if got := CamelCase(phrase); got != want {
			t.Errorf("%q becomes %q, want %q", phrase, got, want)
		}
	}
}

func TestTimesChangeWithTheStatusOnly(t *testing.T) {
	start := time.Date(2026, 11, 22, 18, 0, 0, 5, time.UTC)
	var conditions []metav1.Condition
	at := func(kind string) time.Duration {
		return meta.FindStatusCondition(conditions, kind).LastTransitionTime.Sub(start.Truncate(time.Second))
	}
	reconciling("Retrying", "once").Apply(&conditions, 1, start)
	reconciling("Retrying", "twice").Apply(&conditions, 2, start.Add(time.Minute))
	if ready := meta.FindStatusCondition(conditions, api.ConditionReady); ready.Message != "twice" || ready.ObservedGeneration != 2 {
		t.Errorf("%+v", ready)
	}
	if at(api.ConditionReady) != 0 || at(api.ConditionReconciling) != 0 {
		t.Errorf("the time of a transition changed without one: %v", conditions)
	}
	ready("Done", "done").Apply(&conditions, 2, start.Add(2*time.Minute))
	if at(api.ConditionReady) != 2*time.Minute || at(api.ConditionReconciling) != 2*time.Minute || at(api.ConditionStalled) != 0 {
		t.Errorf("%v", conditions)
	}
}
