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

// String returns the report in Markdown.
func (r *scaleReport) String() string {
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
