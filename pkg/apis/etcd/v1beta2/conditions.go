// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import "slices"

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

// IsLearner reports whether a member had no vote when the operator last saw the membership. id is in the form of
// memberStatuses.
func (s *ClusterStatus) IsLearner(id string) bool {
	return slices.ContainsFunc(s.MemberStatuses, func(m MemberStatus) bool { return m.ID == id && m.Learner })
}

// RecordedVoters is how many members on record have a vote: a learner is on record too. Without a record, it is
// how many members there were.
func (s *ClusterStatus) RecordedVoters() int {
	if s.Record == nil {
		return s.Size
	}
	return len(slices.DeleteFunc(slices.Clone(s.Record.Members), func(m RecordedMember) bool { return s.IsLearner(m.ID) }))
}
