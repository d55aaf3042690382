// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Metrics are those of all restores. Their labels are the EtcdRestore's namespace and
// name. What status tells is set from it, so that a restart loses nothing.
type Metrics struct {
	succeeded   *prometheus.CounterVec
	failed      *prometheus.CounterVec
	servedBytes *prometheus.CounterVec
	phase       *prometheus.GaugeVec
	gauges      []statusGauge
}

// statusGauge is a number that the status tells; false: it does not.
type statusGauge struct {
	gauge *prometheus.GaugeVec
	value func(st *api.RestoreStatus) (float64, bool)
}

var metricLabels = []string{"namespace", "name"}

// NewMetrics registers the metrics; the error is that of a registry that holds
// them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	const namespace = "etcd_restore_operator"
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, metricLabels)
	}
	gauge := func(name, help string, value func(st *api.RestoreStatus) (float64, bool)) statusGauge {
		return statusGauge{prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, metricLabels), value}
	}
	m := &Metrics{
		succeeded:   counter("succeeded_total", "Restores whose cluster is back with all its members."),
		failed:      counter("failed_total", "Attempts that failed before anything was touched."),
		servedBytes: counter("served_bytes_total", "Bytes of backups that first members were sent."),
		phase: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "phase", Help: "1 for the phase that the restore is in.",
		}, append([]string{"phase"}, metricLabels...)),
		gauges: []statusGauge{
			gauge("in_progress", "1 while the restore has not succeeded, and nobody has to edit it first.", func(st *api.RestoreStatus) (float64, bool) {
				return truth(!st.Succeeded && st.Phase != api.RestorePhaseInvalid && st.Phase != api.RestorePhaseFailed), true
			}),
			gauge("started_timestamp_seconds", "When the operator first looked at the restore.", func(st *api.RestoreStatus) (float64, bool) { return moment(st.StartDate) }),
			gauge("completed_timestamp_seconds", "When the restore succeeded.", func(st *api.RestoreStatus) (float64, bool) { return moment(st.CompletionDate) }),
			gauge("duration_seconds", "How long the restore took, from the first look to success.", func(st *api.RestoreStatus) (float64, bool) {
				if st.StartDate == nil || st.CompletionDate == nil {
					return 0, false
				}
				return st.CompletionDate.Sub(st.StartDate.Time).Seconds(), true
			}),
			gauge("failures", "Attempts that failed in a row.", func(st *api.RestoreStatus) (float64, bool) { return float64(st.Failures), true }),
			gauge("backup_size_bytes", "Size of the backup.", func(st *api.RestoreStatus) (float64, bool) {
				if st.Backup == nil {
					return 0, false
				}
				return float64(st.Backup.Size), true
			}),
		},
	}
	all := []prometheus.Collector{m.succeeded, m.failed, m.servedBytes, m.phase}
	for _, g := range m.gauges {
		all = append(all, g.gauge)
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of restores: %w", err)
		}
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
	m.phase.DeletePartialMatch(labelsOf(obj))
	if st.Phase != api.RestorePhaseNone {
		m.phase.WithLabelValues(string(st.Phase), obj.Namespace, obj.Name).Set(1)
	}
	for _, g := range m.gauges {
		if value, told := g.value(st); told {
			g.gauge.WithLabelValues(obj.Namespace, obj.Name).Set(value)
		} else {
			g.gauge.DeleteLabelValues(obj.Namespace, obj.Name)
		}
	}
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

// forget drops the series of a restore that nobody takes care of any more.
func (m *Metrics) forget(obj *api.EtcdRestore) {
	of := labelsOf(obj)
	for _, c := range []*prometheus.CounterVec{m.succeeded, m.failed, m.servedBytes} {
		c.DeletePartialMatch(of)
	}
	m.phase.DeletePartialMatch(of)
	for _, g := range m.gauges {
		g.gauge.DeletePartialMatch(of)
	}
}

func labelsOf(obj *api.EtcdRestore) prometheus.Labels {
	return prometheus.Labels{"namespace": obj.Namespace, "name": obj.Name}
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
