// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// longestBlink is the longest gap between two observations that count as continuous. An idle
// cluster has a pass every Period.
const longestBlink = time.Minute

// quorumLog remembers since when each observation has seen a quorum.
type quorumLog struct{ since, looked time.Time }

// look fills in QuorumSince.
func (q *quorumLog) look(o *plan.Observation) {
	if !o.Quorum || o.Now.Sub(q.looked) > longestBlink {
		q.since = time.Time{}
	}
	if q.looked = o.Now; !o.Quorum {
		return
	}
	if q.since.IsZero() {
		q.since = o.Now
	}
	o.QuorumSince = q.since
}
