// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Timestamp returns a time for a status, in whole seconds; nil for the zero time.
func Timestamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// RoundUp returns a time in whole seconds, for a status that names when something may
// happen. Nothing may happen earlier.
func RoundUp(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}
