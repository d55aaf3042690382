// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
)

// gaugeTable holds numbers of each cluster, and is their collector. A GaugeVec for each number
// would hold the labels of each cluster as often as there are numbers: 8 KiB instead of half a KiB.
type gaugeTable struct {
	descs []*prometheus.Desc

	mu   sync.Mutex
	rows map[types.NamespacedName]*gaugeRow
}

// gaugeRow is what is known of one cluster. All its series share the labels.
type gaugeRow struct {
	labels []*dto.LabelPair
	values []float64
	known  []bool
}

// gaugeLabels are in the order in which Prometheus sorts them.
var gaugeLabels = []string{"cluster", "namespace"}

func newGaugeTable() *gaugeTable { return &gaugeTable{rows: map[types.NamespacedName]*gaugeRow{}} }

// add adds a number in the next column.
func (t *gaugeTable) add(name, help string) {
	t.descs = append(t.descs, prometheus.NewDesc(prometheus.BuildFQName("etcd_operator", "cluster", name), help, gaugeLabels, nil))
}

// set stores numbers of a cluster in columns that follow each other.
func (t *gaugeTable) set(of types.NamespacedName, column int, values ...float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.rows[of]
	if row == nil {
		row = &gaugeRow{
			labels: []*dto.LabelPair{{Name: &gaugeLabels[0], Value: &of.Name}, {Name: &gaugeLabels[1], Value: &of.Namespace}},
			values: make([]float64, len(t.descs)), known: make([]bool, len(t.descs)),
		}
		t.rows[of] = row
	}
	for i, value := range values {
		row.values[column+i], row.known[column+i] = value, true
	}
}

// forget drops the series of a cluster.
func (t *gaugeTable) forget(of types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, of)
}

// Describe sends the descriptions of all numbers.
func (t *gaugeTable) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range t.descs {
		out <- desc
	}
}

// Collect sends all series. No pass waits for the receiver.
func (t *gaugeTable) Collect(out chan<- prometheus.Metric) {
	for _, s := range t.series() {
		out <- s
	}
}

func (t *gaugeTable) series() []gaugeSeries {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]gaugeSeries, 0, len(t.rows)*len(t.descs))
	for _, row := range t.rows {
		for i, desc := range t.descs {
			if row.known[i] {
				all = append(all, gaugeSeries{desc, row.labels, row.values[i]})
			}
		}
	}
	return all
}

// gaugeSeries is one number of one cluster.
type gaugeSeries struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc returns the description.
func (s gaugeSeries) Desc() *prometheus.Desc { return s.desc }

// Write writes the number with its labels.
func (s gaugeSeries) Write(m *dto.Metric) error {
	m.Label, m.Gauge = s.labels, &dto.Gauge{Value: &s.value}
	return nil
}
