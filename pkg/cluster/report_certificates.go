// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certcheck"
)

func newCertificateExpiry() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "etcd_operator", Subsystem: "cluster", Name: "certificate_expiry_timestamp_seconds",
		Help: "When the first certificate of a Secret expires, CAs included, in seconds since 1970.",
	}, []string{"namespace", "cluster", "certificate"})
}

// observeCertificates exports when the certificates of a cluster expire. Unknown dates have no
// series.
func (m *Metrics) observeCertificates(obj *api.EtcdCluster, expiries []certcheck.CertExpiry) {
	at := map[string]float64{}
	for _, e := range expiries {
		at[e.Use] = float64(e.At.Unix())
	}
	for _, u := range certcheck.CertUses {
		if t, known := at[u.Name]; known {
			m.certificateExpiry.WithLabelValues(obj.Namespace, obj.Name, u.Name).Set(t)
		} else {
			m.certificateExpiry.DeleteLabelValues(obj.Namespace, obj.Name, u.Name)
		}
	}
}
