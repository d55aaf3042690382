// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Patience is how long an obstacle may last before the operator asks a person for help,
// where the obstacle can pass by itself.
const Patience = 10 * time.Minute

// A Verdict says which of the three conditions is True, and why. The other two are False.
type Verdict struct {
	// True is ConditionReady, ConditionReconciling or ConditionStalled.
	True string
	// Reason is one word in CamelCase.
	Reason string
	// Message is for people. Ready and the condition that is True contain it.
	Message string
}

func ready(reason, message string) Verdict {
	return Verdict{api.ConditionReady, reason, message}
}

func reconciling(reason, message string) Verdict {
	return Verdict{api.ConditionReconciling, reason, cmp.Or(message, "the operator works towards the spec")}
}

func stalled(reason, message string) Verdict {
	return Verdict{api.ConditionStalled, reason, cmp.Or(message, "the operator needs help from a person")}
}

// Conditions returns Ready, Reconciling and Stalled, without times.
func (v Verdict) Conditions() []metav1.Condition {
	var conditions []metav1.Condition
	for _, t := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
		c := metav1.Condition{Type: t, Status: metav1.ConditionFalse, Reason: v.Reason}
		if t == v.True {
			c.Status = metav1.ConditionTrue
		}
		if t == v.True || t == api.ConditionReady {
			c.Message = v.Message
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// Apply puts the verdict into conditions. The time of a transition changes only with the
// status of its condition.
func (v Verdict) Apply(conditions *[]metav1.Condition, generation int64, now time.Time) {
	for _, c := range v.Conditions() {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second)) // the API server stores seconds
		meta.SetStatusCondition(conditions, c)
	}
}

// SameStates reports whether two lists of conditions differ in messages at most.
func SameStates(a, b []metav1.Condition) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		other := meta.FindStatusCondition(b, c.Type)
		if other == nil || other.Status != c.Status || other.Reason != c.Reason || other.ObservedGeneration != c.ObservedGeneration {
			return false
		}
	}
	return true
}

// CamelCase turns a phrase such as `Quorum lost` into a word such as `QuorumLost`.
func CamelCase(phrase string) string {
	var word strings.Builder
	upper := true
	for _, r := range phrase {
		switch {
		case r == ' ' || r == '-':
			upper = true
			continue
		case !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'):
			continue // as the apostrophe of can't
		case upper && 'a' <= r && r <= 'z':
			r += 'A' - 'a'
		}
		upper = false
		word.WriteRune(r)
	}
	return word.String()
}
