// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// The allocations do not vary with the machine. Labels of its own for each number would be a
// hundred more.
func TestTheNumbersOfAClusterShareTheirLabels(t *testing.T) {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	o := look(t, "cluster size=1\nmember a leader")
	st := statusAfter(o, plan.Plan(o), 1)
	obj := testCluster()
	pass := func() {
		m.state.saw(obj, o, &st)
		m.state.passEnded(obj, noon, 0)
	}
	pass()
	known, n := testing.AllocsPerRun(100, pass), 0
	fresh := testing.AllocsPerRun(100, func() {
		n++
		obj.Name = fmt.Sprint("c", n)
		pass()
	})
	if fresh > known+12 {
		t.Errorf("a new cluster allocates %.0f times, and a known one %.0f times", fresh, known)
	}
}

func TestGaugesAreReadWhilePassesEnd(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	var passes sync.WaitGroup
	for i := range 10 {
		passes.Go(func() {
			obj := testCluster()
			obj.Name = fmt.Sprint("c", i)
			for failures := range 100 {
				m.state.passEnded(obj, noon, failures)
			}
			m.state.forget(obj)
		})
	}
	for range 20 {
		if _, err := registry.Gather(); err != nil {
			t.Error(err)
		}
	}
	passes.Wait()
	families, err := registry.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, f := range families {
		if f.GetName() == "etcd_operator_cluster_failed_passes" {
			t.Errorf("series stay: %s", f)
		}
	}
}
