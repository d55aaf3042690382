// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultRestoreTestTimeout bounds a test of a backup.
const DefaultRestoreTestTimeout = 15 * time.Minute

// RestoreTestLabel is on the EtcdRestore and the EtcdCluster of a test. Its value is the UID of
// the EtcdBackup.
const RestoreTestLabel = GroupName + "/restore-test"

// IsTest reports whether a restore tests a backup of an EtcdBackup. Its EtcdCluster goes with it.
func (r *EtcdRestore) IsTest() bool {
	return r.Spec.ClusterTemplate != nil && slices.ContainsFunc(r.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == EtcdBackupResourceKind && string(o.UID) == r.Labels[RestoreTestLabel]
	})
}

// WrittenAt is when somebody last wrote to the EtcdRestore, and not to its status alone; zero: unknown. A
// restore that no operator has seen may begin until a day later.
func (r *EtcdRestore) WrittenAt() time.Time {
	at := r.CreationTimestamp.Time
	for _, f := range r.ManagedFields {
		if f.Subresource == "" && f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// Timeout bounds a test.
func (t *RestoreTest) Timeout() time.Duration {
	if t.TimeoutInSecond > 0 {
		return seconds(t.TimeoutInSecond)
	}
	return DefaultRestoreTestTimeout
}

// Interval is the least time from one test to the next.
func (t *RestoreTest) Interval() time.Duration { return seconds(t.IntervalInSecond) }
