// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	// slowestCopy is the least that a copy of the database must move on by, in bytes a
	// second. What is slower does not catch up with a cluster that is written to.
	slowestCopy = 1 << 20
	// slowestLoad is the same for a database that a member opens.
	slowestLoad = 32 << 20
)

// copies are when members were last seen to receive a copy of the database.
type copies map[uint64]time.Time

// look asks the learners that run and do not answer whether they receive a copy. etcd
// serves clients only once it has it.
func (c copies) look(ctx context.Context, o *observation, receives func(ctx context.Context, address string) (bool, error)) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asked sync.WaitGroup
	current, received := map[uint64]bool{}, make([]bool, len(o.members))
	for i := range o.members {
		m := &o.members[i]
		current[m.ID] = true
		if !m.Learner || m.foreign() || m.status != nil || m.pod == nil || !m.pod.running || m.pod.ip == "" {
			continue
		}
		asked.Go(func() {
			err := recovered(func() (err error) {
				received[i], err = receives(ctx, net.JoinHostPort(m.pod.ip, strconv.Itoa(metricsPort)))
				return err
			})
			m.copyUnseen = err != nil
		})
	}
	asked.Wait()
	for i := range o.members {
		m := &o.members[i]
		if received[i] {
			c[m.ID] = o.now
		}
		m.received = c[m.ID]
	}
	maps.DeleteFunc(c, func(id uint64, _ time.Time) bool { return len(o.members) > 0 && !current[id] })
}

// copies reports whether a member that does not answer was just seen to receive a copy of
// the database.
func (m memberState) copies(now time.Time) bool {
	return m.status == nil && !m.received.IsZero() && now.Sub(m.received) < statusTimeout+longestWait+Period
}

// overdue reports whether a learner takes too long to join. What counts is that it moves
// on: a copy of a large database may take hours.
func (o *observation) overdue(m memberState) bool {
	began := m.pod.created
	if m.joined() {
		began = m.downSince
	}
	if began.IsZero() {
		return false
	}
	if !m.pod.running {
		return o.now.Sub(began) > joinDeadline
	}
	size := o.dbSize()
	load := joinDeadline + time.Duration(size/slowestLoad)*time.Second
	whole := load + time.Duration(size/slowestCopy)*time.Second
	if m.copyUnseen {
		return o.now.Sub(began) > whole // the operator can't see whether it moves on
	}
	moved := began
	if m.received.After(moved) {
		moved = m.received
	}
	return o.now.Sub(moved) > load || o.now.Sub(began) > whole
}

// dbSize is that of the largest database that a member tells of.
func (o *observation) dbSize() int64 {
	var size int64
	for _, m := range o.members {
		if m.status != nil {
			size = max(size, m.status.DBSize)
		}
	}
	return size
}
