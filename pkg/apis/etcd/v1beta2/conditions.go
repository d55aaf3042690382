// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// All kinds have these conditions, in the sense of kstatus (sigs.k8s.io/cli-utils). At
// most one of them is True.
const (
	// ConditionReady is True while the object is as its spec describes it, and works.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the operator needs help from a person.
	ConditionStalled = "Stalled"
)

// Condition returns the condition of a type; its zero value if there is none.
func (s *ClusterStatus) Condition(t ClusterConditionType) ClusterCondition {
	for _, c := range s.Conditions {
		if c.Type == t {
			return c
		}
	}
	return ClusterCondition{}
}
