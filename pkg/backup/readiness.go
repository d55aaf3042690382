// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/readiness"
)

// withReadiness completes a change of the status by the conditions that follow from it.
func withReadiness(change func(*api.BackupStatus), spec *api.BackupSpec, now time.Time) func(*api.BackupStatus) {
	return func(st *api.BackupStatus) {
		change(st)
		readiness.OfBackup(spec, st).Apply(&st.Conditions, st.ObservedGeneration, now)
	}
}
