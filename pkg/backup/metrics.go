// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectmetrics"
)

// Metrics are those of all backups. Their labels are the EtcdBackup's namespace
// and name. What status shows is set from it, so that a restart loses nothing.
type Metrics struct {
	*objectmetrics.Set[api.BackupStatus]
	attempts     *prometheus.CounterVec
	deleted      *prometheus.CounterVec
	deleteFailed *prometheus.CounterVec
}

// The results of attempts.
const (
	resultSucceeded = "succeeded"
	resultFailed    = "failed"
	resultCancelled = "cancelled"
)

// NewMetrics registers the metrics; the error is that of a registry that holds
// them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	set := objectmetrics.New[api.BackupStatus]("etcd_backup_operator")
	m := &Metrics{
		Set:          set,
		attempts:     set.Counter("attempts_total", "Attempts to make a backup that have ended; cancelled are those that an edit, a deletion or the end of the operator stopped.", "result"),
		deleted:      set.Counter("deleted_total", "Backups that were deleted because newer ones were to be kept."),
		deleteFailed: set.Counter("retention_failed_total", "How often old backups could not be looked for, or not all be deleted."),
	}
	date := func(name, help string, of func(*api.BackupStatus) *metav1.Time) {
		set.StatusGauge(name, help, func(st *api.BackupStatus) (float64, bool) { return objectmetrics.Moment(of(st)) })
	}
	date("last_success_timestamp_seconds", "When the newest backup was complete.", func(st *api.BackupStatus) *metav1.Time { return st.LastSuccessDate })
	date("last_attempt_timestamp_seconds", "When the last attempt began.", func(st *api.BackupStatus) *metav1.Time { return st.LastExecutionDate })
	date("next_execution_timestamp_seconds", "When the next attempt is due.", func(st *api.BackupStatus) *metav1.Time { return st.NextExecutionDate })
	set.StatusGauge("last_duration_seconds", "How long the newest backup took.", func(st *api.BackupStatus) (float64, bool) {
		if st.Duration == nil {
			return 0, false
		}
		return st.Duration.Seconds(), true
	})
	set.StatusGauge("last_size_bytes", "Size of the newest backup.", func(st *api.BackupStatus) (float64, bool) { return float64(st.Size), st.Size > 0 })
	set.StatusGauge("last_revision", "Revision of etcd's data in the newest backup.", func(st *api.BackupStatus) (float64, bool) {
		return float64(st.EtcdRevision), st.EtcdRevision > 0
	})
	set.StatusGauge("last_success_uncertain", "1 where the newest backup was taken while etcd had no quorum: writes may be missing in it.", func(st *api.BackupStatus) (float64, bool) {
		return objectmetrics.Truth(st.Uncertain), st.LastSuccessDate != nil
	})
	set.StatusGauge("failures", "Attempts that failed since the last success.", func(st *api.BackupStatus) (float64, bool) { return float64(st.Failures), true })
	set.StatusGauge("restore_test_last_success_timestamp_seconds", "When the last test that restored a backup passed.", func(st *api.BackupStatus) (float64, bool) {
		if st.RestoreTest == nil {
			return 0, false
		}
		return objectmetrics.Moment(st.RestoreTest.LastSuccessDate)
	})
	set.StatusGauge("restore_test_revision", "Revision of etcd's data in the last test that restored a backup and passed.", func(st *api.BackupStatus) (float64, bool) {
		if st.RestoreTest == nil {
			return 0, false
		}
		return float64(st.RestoreTest.EtcdRevision), st.RestoreTest.EtcdRevision > 0
	})
	set.StatusGauge("restore_test_failed", "1 while the last test that restored a backup did not pass, or could not be carried out.", func(st *api.BackupStatus) (float64, bool) {
		t := st.RestoreTest
		return objectmetrics.Truth(t != nil && (t.Result == api.RestoreTestFailed || t.Result == api.RestoreTestNotDone)), t != nil
	})
	set.StatusGauge("log_members_inconsistent", "1 while members of etcd have different keys, as their hashes showed when they were last compared.", func(st *api.BackupStatus) (float64, bool) {
		c := st.Continuous
		return objectmetrics.Truth(c != nil && c.Inconsistency != ""), c != nil
	})
	set.StatusGauge("log_newest_timestamp_seconds", "The newest moment that the log of changes can bring back.", func(st *api.BackupStatus) (float64, bool) {
		if st.Continuous == nil {
			return 0, false
		}
		return objectmetrics.Moment(st.Continuous.NewestDate)
	})
	set.StatusGauge("log_gaps", "How often the log of changes could not continue.", func(st *api.BackupStatus) (float64, bool) {
		if st.Continuous == nil {
			return 0, false
		}
		return float64(st.Continuous.Gaps), true
	})
	set.StatusGauge("log_recording", "1 while the changes of etcd are recorded.", func(st *api.BackupStatus) (float64, bool) {
		if st.Continuous == nil {
			return 0, false
		}
		return objectmetrics.Truth(st.Continuous.Recording), true
	})
	in := func(phase api.BackupPhase, name, help string) {
		set.StatusGauge(name, help, func(st *api.BackupStatus) (float64, bool) { return objectmetrics.Truth(st.Phase == phase), true })
	}
	in(api.BackupPhaseRunning, "running", "1 while the backup is being made.")
	in(api.BackupPhaseSuspended, "suspended", "1 while spec.backupPolicy.suspend stops the schedule.")
	in(api.BackupPhaseInvalid, "invalid", "1 while the spec can't be followed until it is edited.")
	if err := reg.Register(set); err != nil {
		return nil, fmt.Errorf("register the metrics of backups: %w", err)
	}
	return m, nil
}

// appear makes the series of a backup, so that the first of what they count is an
// increase.
func (m *Metrics) appear(obj *api.EtcdBackup) {
	for _, result := range []string{resultSucceeded, resultFailed, resultCancelled} {
		m.attempts.WithLabelValues(result, obj.Namespace, obj.Name)
	}
	m.deleted.WithLabelValues(obj.Namespace, obj.Name)
	m.deleteFailed.WithLabelValues(obj.Namespace, obj.Name)
}

func (m *Metrics) attemptEnded(obj *api.EtcdBackup, result string) {
	m.attempts.WithLabelValues(result, obj.Namespace, obj.Name).Inc()
}

func (m *Metrics) tidied(obj *api.EtcdBackup, t tidied) {
	m.deleted.WithLabelValues(obj.Namespace, obj.Name).Add(float64(len(t.deleted)))
	if t.err != nil {
		m.deleteFailed.WithLabelValues(obj.Namespace, obj.Name).Inc()
	}
}
