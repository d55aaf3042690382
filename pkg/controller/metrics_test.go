// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

func TestClustersAreCountedAsTheyComeChangeAndGo(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	counted := m.counted()
	want := func(created, deleted, modified, failed float64) {
		t.Helper()
		for name, v := range map[string]float64{"_created": created, "_deleted": deleted, "_modified": modified, "_failed": failed} {
			if got := metric(t, registry, "etcd_operator_controller_clusters"+name); got != v {
				t.Errorf("etcd_operator_controller_clusters%s is %v, want %v", name, got, v)
			}
		}
	}
	creating := fleettest.EtcdCluster("a", "1")
	running := fleettest.EtcdCluster("a", "1", fleettest.Phase(api.ClusterPhaseRunning))
	failed := fleettest.EtcdCluster("a", "1", fleettest.Size(5), fleettest.Phase(api.ClusterPhaseFailed))
	counted.Created()
	want(1, 0, 0, 0)
	counted.Updated(creating, running) // a status is no edit
	want(1, 0, 0, 0)
	counted.Updated(running, failed)
	want(1, 0, 1, 1)
	counted.Updated(failed, failed)
	want(1, 0, 1, 1)
	counted.Deleted()
	want(1, 1, 1, 1)
}
