// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// markLog remembers since when each member that the record marks as removing has stayed. A new
// operator starts again.
type markLog struct {
	since  map[string]time.Time // by ID
	looked time.Time
}

// look fills in StaysSince. A pass counts if all voters confirm reads: none of them then holds
// back a request for the removal.
func (l *markLog) look(o *plan.Observation) {
	voters := o.Voters()
	steady := o.Quorum && plan.Count(voters, plan.MemberState.Healthy) == len(voters)
	if !steady || o.Now.Sub(l.looked) > longestBlink {
		l.since = nil
	}
	l.looked = o.Now
	if !steady || o.Record == nil {
		return
	}
	since := map[string]time.Time{}
	for _, r := range o.Record.Members {
		if !r.Removing || !slices.ContainsFunc(o.Members, func(m plan.MemberState) bool { return etcd.FormatID(m.ID) == r.ID }) {
			continue
		}
		since[r.ID] = o.Now
		if at, known := l.since[r.ID]; known {
			since[r.ID] = at
		}
	}
	l.since, o.StaysSince = since, maps.Clone(since)
}

// planned starts the time again for a member that the operator tries to remove.
func (l *markLog) planned(s plan.Step) {
	if removal, is := s.(plan.RemoveMember); is {
		delete(l.since, etcd.FormatID(removal.ID))
	}
}
