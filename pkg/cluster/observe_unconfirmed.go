// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// unconfirmedLog remembers since when most voters answer and confirm no reads, while no entry
// is committed. The leader alone still serves reads then: a member that receives a snapshot
// answers heartbeats, and so does one whose disk hangs and that has nothing to write. Writes
// wait for the disks of a majority.
type unconfirmedLog struct {
	since time.Time
	index uint64 // the last committed entry that a voter has reported
}

// look fills in UnconfirmedSince. A voter that the operator does not reach may confirm.
func (l *unconfirmedLog) look(o *plan.Observation) {
	voters := o.Voters()
	silent := plan.Count(voters, func(m plan.MemberState) bool { return m.Answers() && !m.Healthy() })
	if !o.Quorum || len(voters)-silent >= etcd.Quorum(len(voters)) {
		*l = unconfirmedLog{}
		return
	}
	var index uint64
	for _, m := range voters {
		if m.Status != nil {
			index = max(index, m.Status.RaftIndex)
		}
	}
	if l.since.IsZero() || index > l.index {
		*l = unconfirmedLog{o.Now, index}
	}
	o.UnconfirmedSince = l.since
}
