// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"
	"time"
)

// An availability is how a cluster took writes.
type availability struct {
	cluster string
	// share of the seconds in which a write was acknowledged.
	share float64
	// gap is the longest time between two acknowledged writes.
	gap time.Duration
}

// availability tells how the cluster took writes up to a time since the start.
func (h *history) availability(cluster string, end time.Duration) availability {
	h.mu.Lock()
	defer h.mu.Unlock()
	seconds := map[int64]bool{}
	acknowledged := []time.Duration{0, end}
	for _, o := range h.ops {
		if out, asked := o.Output.(outcome), o.Input.(op); out.unknown || asked.kind == get {
			continue
		}
		at := time.Duration(o.Return)
		if at > end {
			continue
		}
		acknowledged = append(acknowledged, at)
		seconds[int64(at/time.Second)] = true
	}
	a := availability{cluster: cluster, share: float64(len(seconds)) / max(1, end.Seconds())}
	slices.Sort(acknowledged)
	for i := range acknowledged[1:] {
		a.gap = max(a.gap, acknowledged[i+1]-acknowledged[i])
	}
	a.share = min(a.share, 1)
	return a
}
