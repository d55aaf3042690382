// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/objectmetrics"
)

// Metrics are those of all restores. Their labels are the EtcdRestore's namespace and
// name. What status shows is set from it, so that a restart loses nothing.
type Metrics struct {
	*objectmetrics.Set[api.RestoreStatus]
	succeeded   *prometheus.CounterVec
	failed      *prometheus.CounterVec
	servedBytes *prometheus.CounterVec
	phase       *prometheus.GaugeVec
}

// NewMetrics registers the metrics; the error is that of a registry that holds
// them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	set := objectmetrics.New[api.RestoreStatus]("etcd_restore_operator")
	m := &Metrics{
		Set:         set,
		succeeded:   set.Counter("succeeded_total", "Restores whose cluster is back with all its members."),
		failed:      set.Counter("failed_total", "Attempts that failed before anything was touched."),
		servedBytes: set.Counter("served_bytes_total", "Bytes of backups that first members were sent."),
		phase:       set.Gauge("phase", "1 for the phase that the restore is in.", "phase"),
	}
	set.StatusGauge("in_progress", "1 while the restore has not succeeded, and nobody has to edit it first.", func(st *api.RestoreStatus) (float64, bool) {
		return objectmetrics.Truth(!st.Succeeded && st.Phase != api.RestorePhaseInvalid && st.Phase != api.RestorePhaseFailed), true
	})
	set.StatusGauge("started_timestamp_seconds", "When the operator first looked at the restore.", func(st *api.RestoreStatus) (float64, bool) {
		return objectmetrics.Moment(st.StartDate)
	})
	set.StatusGauge("completed_timestamp_seconds", "When the restore succeeded.", func(st *api.RestoreStatus) (float64, bool) {
		return objectmetrics.Moment(st.CompletionDate)
	})
	set.StatusGauge("duration_seconds", "How long the restore took, from the first look to success.", func(st *api.RestoreStatus) (float64, bool) {
		if st.StartDate == nil || st.CompletionDate == nil {
			return 0, false
		}
		return st.CompletionDate.Sub(st.StartDate.Time).Seconds(), true
	})
	set.StatusGauge("failures", "Attempts that failed in a row.", func(st *api.RestoreStatus) (float64, bool) { return float64(st.Failures), true })
	set.StatusGauge("backup_size_bytes", "Size of the backup.", func(st *api.RestoreStatus) (float64, bool) {
		if st.Backup == nil {
			return 0, false
		}
		return float64(st.Backup.Size), true
	})
	if err := reg.Register(set); err != nil {
		return nil, fmt.Errorf("register the metrics of restores: %w", err)
	}
	return m, nil
}

// appear makes the series of a restore, so that the first of what they count is an
// increase.
func (m *Metrics) appear(obj *api.EtcdRestore) {
	for _, c := range []*prometheus.CounterVec{m.succeeded, m.failed, m.servedBytes} {
		c.WithLabelValues(obj.Namespace, obj.Name)
	}
}

// saw takes over a status.
func (m *Metrics) saw(obj *api.EtcdRestore) {
	st := &obj.Status
	m.phase.DeletePartialMatch(objectmetrics.Of(obj))
	if st.Phase != api.RestorePhaseNone {
		m.phase.WithLabelValues(string(st.Phase), obj.Namespace, obj.Name).Set(1)
	}
	m.Saw(obj, st)
}

// changed counts what a write has put on record.
func (m *Metrics) changed(obj *api.EtcdRestore, before *api.RestoreStatus) {
	if obj.Status.Succeeded && !before.Succeeded && before.Backup != nil {
		m.succeeded.WithLabelValues(obj.Namespace, obj.Name).Inc()
	}
	if obj.Status.Failures > before.Failures {
		m.failed.WithLabelValues(obj.Namespace, obj.Name).Inc()
	}
}

// sent counts bytes that were served of the backup of a restore. It may be called
// concurrently.
func (m *Metrics) sent(obj *api.EtcdRestore) func(n int64) {
	c := m.servedBytes.WithLabelValues(obj.Namespace, obj.Name)
	return func(n int64) { c.Add(float64(n)) }
}
