// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Metrics are those of all backups. Their labels are the EtcdBackup's namespace
// and name. What status tells is set from it, so that a restart loses nothing.
type Metrics struct {
	attempts     *prometheus.CounterVec
	deleted      *prometheus.CounterVec
	deleteFailed *prometheus.CounterVec
	gauges       []statusGauge
}

// statusGauge is a number that the status tells; false: it does not.
type statusGauge struct {
	gauge *prometheus.GaugeVec
	value func(st *api.BackupStatus) (float64, bool)
}

// The results of attempts.
const (
	resultSucceeded = "succeeded"
	resultFailed    = "failed"
	resultCancelled = "cancelled"
)

var metricLabels = []string{"namespace", "name"}

// NewMetrics registers the metrics; the error is that of a registry that holds
// them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	const namespace = "etcd_backup_operator"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, append(labels, metricLabels...))
	}
	gauge := func(name, help string, value func(st *api.BackupStatus) (float64, bool)) statusGauge {
		return statusGauge{prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, metricLabels), value}
	}
	in := func(phase api.BackupPhase) func(st *api.BackupStatus) (float64, bool) {
		return func(st *api.BackupStatus) (float64, bool) { return truth(st.Phase == phase), true }
	}
	m := &Metrics{
		attempts:     counter("attempts_total", "Attempts to make a backup that have ended; cancelled are those that an edit, a deletion or the end of the operator stopped.", "result"),
		deleted:      counter("deleted_total", "Backups that were deleted because newer ones were to be kept."),
		deleteFailed: counter("retention_failed_total", "How often old backups could not be looked for, or not all be deleted."),
		gauges: []statusGauge{
			gauge("last_success_timestamp_seconds", "When the newest backup was complete.", func(st *api.BackupStatus) (float64, bool) { return moment(st.LastSuccessDate) }),
			gauge("last_attempt_timestamp_seconds", "When the last attempt began.", func(st *api.BackupStatus) (float64, bool) { return moment(st.LastExecutionDate) }),
			gauge("next_execution_timestamp_seconds", "When the next attempt is due.", func(st *api.BackupStatus) (float64, bool) { return moment(st.NextExecutionDate) }),
			gauge("last_duration_seconds", "How long the newest backup took.", func(st *api.BackupStatus) (float64, bool) {
				if st.Duration == nil {
					return 0, false
				}
				return st.Duration.Seconds(), true
			}),
			gauge("last_size_bytes", "Size of the newest backup.", func(st *api.BackupStatus) (float64, bool) { return float64(st.Size), st.Size > 0 }),
			gauge("last_revision", "Revision of etcd's data in the newest backup.", func(st *api.BackupStatus) (float64, bool) { return float64(st.EtcdRevision), st.EtcdRevision > 0 }),
			gauge("last_success_uncertain", "1 where the newest backup was taken while etcd had no quorum: writes may be missing in it.", func(st *api.BackupStatus) (float64, bool) {
				return truth(st.Uncertain), st.LastSuccessDate != nil
			}),
			gauge("failures", "Attempts that failed since the last success.", func(st *api.BackupStatus) (float64, bool) { return float64(st.Failures), true }),
			gauge("running", "1 while the backup is being made.", in(api.BackupPhaseRunning)),
			gauge("suspended", "1 while spec.backupPolicy.suspend stops the schedule.", in(api.BackupPhaseSuspended)),
			gauge("invalid", "1 while the spec can't be followed until it is edited.", in(api.BackupPhaseInvalid)),
		},
	}
	all := []prometheus.Collector{m.attempts, m.deleted, m.deleteFailed}
	for _, g := range m.gauges {
		all = append(all, g.gauge)
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of backups: %w", err)
		}
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

// saw takes over a status.
func (m *Metrics) saw(obj *api.EtcdBackup, st *api.BackupStatus) {
	for _, g := range m.gauges {
		if value, told := g.value(st); told {
			g.gauge.WithLabelValues(obj.Namespace, obj.Name).Set(value)
		} else {
			g.gauge.DeleteLabelValues(obj.Namespace, obj.Name)
		}
	}
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

// forget drops the series of a backup that nobody takes care of any more.
func (m *Metrics) forget(obj *api.EtcdBackup) {
	of := prometheus.Labels{"namespace": obj.Namespace, "name": obj.Name}
	m.attempts.DeletePartialMatch(of)
	m.deleted.DeletePartialMatch(of)
	m.deleteFailed.DeletePartialMatch(of)
	for _, g := range m.gauges {
		g.gauge.DeletePartialMatch(of)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func moment(t *metav1.Time) (float64, bool) {
	if t == nil {
		return 0, false
	}
	return float64(t.Unix()), true
}
