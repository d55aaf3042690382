// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"time"
)

// The project's aims for clusters of one member at rest. A process has fixed costs, so the aims
// apply from enoughClusters on.
const (
	enoughClusters   = 100
	idleCPUTarget    = 250 * time.Millisecond // a minute, for each enoughClusters
	idleMemoryTarget = 64 << 10               // for each cluster
)

// A scaleStep is what a number of clusters cost. The requests are those to the API server.
type scaleStep struct {
	clusters int
	// added is how many of them were created together, in which time all became ready.
	added int
	ready time.Duration
	// starting are the requests in that time.
	starting float64
	rest     restCost
	upgrade  upgradeCost
	failover failoverCost
	// deaths are the times from the death of a member of three to its replacement.
	deaths []time.Duration
}

// upgradeCost is what the upgrade of all clusters cost the operator.
type upgradeCost struct {
	took      time.Duration
	requests  float64
	processor time.Duration
	// peak is the most resident memory meanwhile, in bytes.
	peak int64
}

// failoverCost is how long another operator took after a kill, to lead and to care for all
// clusters, and its requests in that time.
type failoverCost struct {
	leads, cares time.Duration
	requests     float64
}

// restCost is what an operator costs that has nothing to do.
type restCost struct {
	// processor time and requests in a minute.
	processor time.Duration
	requests  float64
	// resident memory in bytes.
	resident int64
}

// scaleReport is the measurements of an operator. none is its cost without clusters.
type scaleReport struct {
	none  restCost
	steps []scaleStep
}

// String returns the report in Markdown: what clusters cost at rest, and in motion.
func (r *scaleReport) String() string { return r.atRest() + "\n" + r.inMotion() }

func (r *scaleReport) atRest() string {
	var b strings.Builder
	b.WriteString("| clusters | new ones ready after | API requests for each new one | processor time, idle minute | API requests, idle minute | resident memory | for each cluster |\n|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| 0 | | | %s | %.0f | %s | |\n", seconds(r.none.processor), r.none.requests, mebibytes(r.none.resident))
	for _, s := range r.steps {
		memory := (s.rest.resident - r.none.resident) / int64(s.clusters)
		mayTake := idleCPUTarget * time.Duration(s.clusters) / enoughClusters
		var processor, each string
		if s.clusters >= enoughClusters {
			processor = fmt.Sprintf(" (≤ %s: %s)", seconds(mayTake), met(s.rest.processor <= mayTake))
			each = fmt.Sprintf(" (≤ %d KiB: %s)", idleMemoryTarget>>10, met(memory <= idleMemoryTarget))
		}
		fmt.Fprintf(&b, "| %d | %d: %s | %.1f | %s%s | %.0f | %s | %d KiB%s |\n", s.clusters, s.added, seconds(s.ready), s.starting/float64(s.added),
			seconds(s.rest.processor), processor, s.rest.requests, mebibytes(s.rest.resident), memory>>10, each)
	}
	return b.String()
}

// inMotion names the costs for each cluster beside the sums: they must not grow.
func (r *scaleReport) inMotion() string {
	var b strings.Builder
	b.WriteString("| clusters | all upgraded after | API requests for each | processor time for each | peak memory | another operator leads after a kill | cares for all after | API requests for each | member of three replaced after |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range r.steps {
		n := float64(s.clusters)
		each := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/n/float64(time.Millisecond)) }
		caring := s.failover.cares - s.failover.leads
		fmt.Fprintf(&b, "| %d | %s (%s for each) | %.1f | %s | %s (%d KiB for each) | %s | %s more (%s for each) | %.1f | %s (median of %d) |\n", s.clusters,
			seconds(s.upgrade.took), each(s.upgrade.took), s.upgrade.requests/n, each(s.upgrade.processor),
			mebibytes(s.upgrade.peak), (s.upgrade.peak-r.none.resident)/int64(s.clusters)>>10,
			seconds(s.failover.leads), seconds(caring), each(caring), s.failover.requests/n, seconds(median(s.deaths)), len(s.deaths))
	}
	return b.String()
}
