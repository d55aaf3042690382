// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Metrics are the metrics of all clusters and of the passes over them.
type Metrics struct {
	duration          *prometheus.HistogramVec
	failed            prometheus.Counter
	state             clusterGauges
	certificateExpiry *prometheus.GaugeVec
}

// NewMetrics registers the metrics. The error is from a registry that has them already.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "etcd_operator", Subsystem: "cluster", Name: "reconcile_duration",
			Help:    "Duration of a pass over a cluster, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 10),
		}, []string{"ClusterName"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "etcd_operator", Subsystem: "cluster", Name: "reconcile_failed",
			Help: "Number of passes over clusters that ended with an error.",
		}),
		certificateExpiry: newCertificateExpiry(),
	}
	m.state = newClusterGauges()
	for _, c := range []prometheus.Collector{m.state.table, m.duration, m.failed, m.certificateExpiry} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of clusters: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) observePass(obj *api.EtcdCluster, d time.Duration) {
	m.duration.WithLabelValues(metricName(obj)).Observe(d.Seconds())
}

func (m *Metrics) passFailed() { m.failed.Inc() }

// forget drops the series of a cluster that this operator no longer manages.
func (m *Metrics) forget(obj *api.EtcdCluster) {
	m.duration.DeleteLabelValues(metricName(obj))
	m.state.forget(obj)
	m.observeCertificates(obj, nil)
}

func metricName(obj *api.EtcdCluster) string { return obj.Namespace + "/" + obj.Name }
