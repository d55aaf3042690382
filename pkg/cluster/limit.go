// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/fair"
)

const (
	// passesAtOnce is how many passes begin at once after a pause.
	passesAtOnce = 100
	// sparePasses is how many passes begin in a second beyond those on the clusters' timers.
	sparePasses = 100
)

// PassLimit limits the passes over all clusters of an operator. A thousand clusters that start,
// or that a new leader takes over, must not open thousands of connections in a second. Passes
// wait in turns of their namespaces. The limit grows with the number of clusters, so that each
// keeps its pass on the timer.
func PassLimit(clk clock.Clock, clusters func() int) *fair.Limiter {
	rate := func() float64 { return sparePasses + float64(clusters())/Period.Seconds() }
	return fair.New(clk, rate, passesAtOnce)
}
