// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

const (
	// slowestCopy is the least progress of a copy of the database, in bytes a second. A slower
	// copy never catches up with a cluster under writes.
	slowestCopy = 1 << 20
	// slowestLoad is the same for a database that a member opens.
	slowestLoad = 32 << 20
	// copySeenFor is how long a copy counts as in progress after the operator last saw it. That
	// is a period of the loop, and the time of a request to a member.
	copySeenFor = 11 * time.Second
)

// Copies reports whether a silent member was just seen to receive a copy of the database.
func (m MemberState) Copies(now time.Time) bool {
	return m.Status == nil && !m.Received.IsZero() && now.Sub(m.Received) < copySeenFor
}

// overdue reports whether a learner takes too long to join. Progress counts, not time: a copy
// of a large database may take hours.
func (o *Observation) overdue(m MemberState) bool {
	began := m.Pod.Created
	if m.Joined() {
		began = m.DownSince
	}
	if began.IsZero() {
		return false
	}
	if !m.Pod.Running {
		return o.Now.Sub(began) > joinDeadline
	}
	size := o.dbSize()
	load := joinDeadline + time.Duration(size/slowestLoad)*time.Second
	whole := load + time.Duration(size/slowestCopy)*time.Second
	if m.CopyUnseen {
		return o.Now.Sub(began) > whole // the operator can't see its progress
	}
	moved := began
	if m.Received.After(moved) {
		moved = m.Received
	}
	return o.Now.Sub(moved) > load || o.Now.Sub(began) > whole
}
