// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
)

// metrics counts the clusters that come, change and go.
type metrics struct {
	created, deleted, modified, failed prometheus.Counter
}

// newMetrics registers the controller's metrics, but for the number of clusters, which
// the fleet knows.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "etcd_operator", Subsystem: "controller", Name: name, Help: help,
		})
	}
	m := &metrics{
		created:  counter("clusters_created", "Clusters that the operator began to manage since it started to lead."),
		deleted:  counter("clusters_deleted", "Clusters that were deleted or left the operator's scope."),
		modified: counter("clusters_modified", "Edits of the specs of clusters."),
		failed:   counter("clusters_failed", "Times that a cluster entered phase Failed."),
	}
	for _, c := range []prometheus.Collector{m.created, m.deleted, m.modified, m.failed} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the controller: %w", err)
		}
	}
	return m, nil
}

// counted counts what happens in the fleet.
func (m *metrics) counted() fleet.Counted[*api.EtcdCluster] {
	return fleet.Counted[*api.EtcdCluster]{
		Created: m.created.Inc,
		Deleted: m.deleted.Inc,
		Updated: func(before, after *api.EtcdCluster) {
			if before.Generation != after.Generation {
				m.modified.Inc()
			}
			if before.Status.Phase != api.ClusterPhaseFailed && after.Status.Phase == api.ClusterPhaseFailed {
				m.failed.Inc()
			}
		},
	}
}
