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

// Copies reports whether a member that serves nothing was just seen to receive a copy of the database.
func (m MemberState) Copies(now time.Time) bool {
	return (m.Status == nil || m.Stalled) && !m.Received.IsZero() && now.Sub(m.Received) < copySeenFor
}

// overdue reports whether a learner takes too long to join. Progress counts, not time: a copy
// of a large database may take hours. Its pod may have waited for long before the member was added.
func (o *Observation) overdue(m MemberState) bool {
	waited := m.SilentFor(o.Now)
	if !m.Joined() {
		waited = min(waited, o.Now.Sub(m.Pod.Created))
	}
	if !m.Pod.Running {
		return waited > joinDeadline
	}
	load, whole := o.copyTimes()
	if m.CopyUnseen {
		return waited > whole // the operator can't see its progress
	}
	return min(waited, o.Now.Sub(m.Received)) > load || waited > whole
}

// copyTimes returns how long a member may take to load a copy of the database, and to receive and load it.
func (o *Observation) copyTimes() (load, whole time.Duration) {
	size := o.dbSize()
	load = joinDeadline + time.Duration(size/slowestLoad)*time.Second
	return load, load + time.Duration(size/slowestCopy)*time.Second
}

// catchesUp reports whether a voter that serves nothing receives a copy of the database, or has received
// one lately. It was away for longer than the others keep their log. A defragmentation counts as a copy.
func (o *Observation) catchesUp(m MemberState) bool {
	load, whole := o.copyTimes()
	return !m.Received.Before(m.DownSince) && o.Now.Sub(m.Received) <= load && m.Awaited <= WedgeDeadline+whole
}
