// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// mostFailures is the number of failed attempts in a row after which a person should look.
// The last one ends about two and a half minutes after the first, and later if attempts
// take long.
const mostFailures = 6

// OfBackup returns the verdict about an EtcdBackup. The verdict about a schedule is about
// its attempts, not about an attempt's progress: an attempt that runs at night does not
// make the schedule unready.
func OfBackup(spec *api.BackupSpec, st *api.BackupStatus) Verdict {
	periodic := spec.Periodic()
	switch st.Phase {
	case api.BackupPhaseInvalid:
		return stalled("SpecRefused", st.Reason)
	case api.BackupPhaseFailed:
		return stalled("GivenUp", st.Reason)
	case api.BackupPhaseSucceeded:
		return ready("BackupComplete", "the backup is complete")
	case api.BackupPhaseSuspended:
		if periodic {
			return ready("Suspended", "spec.backupPolicy.suspend is true: the operator makes no backups")
		}
		return stalled("Suspended", "spec.backupPolicy.suspend is true: the operator does not make the backup")
	}
	switch {
	case st.Failures >= mostFailures:
		return stalled("BackupFailing", st.Reason)
	case st.Phase == api.BackupPhaseRetrying || st.Failures > 0:
		return reconciling("Retrying", st.Reason)
	case periodic:
		return ready("Scheduled", "the operator makes backups on schedule")
	case st.Phase == api.BackupPhaseRunning:
		return reconciling("BackupRunning", "the operator makes the backup")
	}
	return reconciling("Queued", "the backup waits for its turn")
}
