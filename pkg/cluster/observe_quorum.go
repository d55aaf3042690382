// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// longestBlink is the longest gap between two observations that count as continuous. An idle
// cluster has a pass every Period.
const longestBlink = time.Minute

// shortOutage is the length of a lost quorum that is no outage: an election takes about as long.
const shortOutage = 3 * time.Second

// quorumLog remembers since when each observation has seen a quorum, since when each one has
// seen none, and when the quorum returned from an outage. unseen is when a quorum may last have
// served that the operator did not see.
type quorumLog struct{ since, looked, lost, returned, unseen time.Time }

// look fills in QuorumSince and QuorumReturned.
func (q *quorumLog) look(o *plan.Observation) {
	switch {
	case !o.Quorum && q.lost.IsZero() && o.Status.Phase == api.ClusterPhaseRunning:
		q.lost = o.Now
	case o.Quorum && !q.lost.IsZero():
		if o.Now.Sub(q.lost) >= shortOutage {
			q.returned = o.Now
		}
		q.lost = time.Time{}
	}
	o.QuorumReturned = q.returned
	if !o.Quorum || o.Now.Sub(q.looked) > longestBlink {
		q.since = time.Time{}
	}
	if q.looked = o.Now; !o.Quorum {
		return
	}
	q.unseen = time.Time{}
	if q.since.IsZero() {
		q.since = o.Now
	}
	o.QuorumSince = q.since
}
