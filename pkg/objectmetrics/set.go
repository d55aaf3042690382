// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectmetrics provides metrics with a series for each object of a kind, labelled
// with its namespace and name. Their meaning is up to the caller.
package objectmetrics

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set is the metrics of one kind, whose status is an S. Register it as one collector after
// adding all metrics.
type Set[S any] struct {
	namespace string
	vectors   []vector
	ofStatus  []statusGauge[S]
}

type vector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

type statusGauge[S any] struct {
	gauge *prometheus.GaugeVec
	value func(*S) (float64, bool)
}

// New returns an empty Set. namespace is the prefix of its metrics' names.
func New[S any](namespace string) *Set[S] { return &Set[S]{namespace: namespace} }

// labelsOf returns the labels of a metric: its own come first.
func labelsOf(own []string) []string { return append(own, "namespace", "name") }

// Counter adds a counter. Its own labels come before the object's namespace and name.
func (s *Set[S]) Counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: s.namespace, Name: name, Help: help}, labelsOf(labels))
	s.vectors = append(s.vectors, v)
	return v
}

// Gauge adds a gauge. Its own labels come before the object's namespace and name.
func (s *Set[S]) Gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: s.namespace, Name: name, Help: help}, labelsOf(labels))
	s.vectors = append(s.vectors, v)
	return v
}

// StatusGauge adds a gauge of a value in the status. If value returns false, there is no
// series. A restart loses nothing, because the status has the value.
func (s *Set[S]) StatusGauge(name, help string, value func(*S) (float64, bool)) {
	s.ofStatus = append(s.ofStatus, statusGauge[S]{s.Gauge(name, help), value})
}

// Saw sets the status gauges of an object.
func (s *Set[S]) Saw(obj metav1.Object, status *S) {
	for _, g := range s.ofStatus {
		if value, told := g.value(status); told {
			g.gauge.WithLabelValues(obj.GetNamespace(), obj.GetName()).Set(value)
		} else {
			g.gauge.DeleteLabelValues(obj.GetNamespace(), obj.GetName())
		}
	}
}

// Forget drops the series of an object that this operator no longer manages.
func (s *Set[S]) Forget(obj metav1.Object) {
	for _, v := range s.vectors {
		v.DeletePartialMatch(Of(obj))
	}
}

// Of returns the labels that all series of an object have.
func Of(obj metav1.Object) prometheus.Labels {
	return prometheus.Labels{"namespace": obj.GetNamespace(), "name": obj.GetName()}
}

// Describe makes the Set a collector.
func (s *Set[S]) Describe(to chan<- *prometheus.Desc) {
	for _, v := range s.vectors {
		v.Describe(to)
	}
}

// Collect makes the Set a collector.
func (s *Set[S]) Collect(to chan<- prometheus.Metric) {
	for _, v := range s.vectors {
		v.Collect(to)
	}
}

// Truth is 1 for true and 0 for false.
func Truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// Moment returns a time in seconds since 1970; false: there is none.
func Moment(t *metav1.Time) (float64, bool) {
	if t == nil {
		return 0, false
	}
	return float64(t.Unix()), true
}
