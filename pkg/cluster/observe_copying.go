// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// copies are when members were last seen to receive a copy of the database.
type copies map[uint64]time.Time

// voterPatience is how long a voter serves nothing before the operator asks whether it receives a copy. It
// needs one after it was away for longer than the others keep their log. It serves nothing either while
// somebody defragments its database.
const voterPatience = time.Minute

// mayCopy reports whether a member may be receiving a copy. A new one serves clients only after it.
func mayCopy(m *plan.MemberState, now time.Time) bool {
	switch {
	case m.Foreign() || m.Pod == nil || !m.Pod.Running && !m.Pod.Waiting || m.Pod.IP == "":
		return false
	case m.Learner:
		return m.Status == nil
	default:
		return !m.DownSince.IsZero() && now.Sub(m.DownSince) >= voterPatience
	}
}

// look asks the members that may receive a copy of the database whether they do.
func (c copies) look(ctx context.Context, o *plan.Observation, receives func(ctx context.Context, address string) (bool, error)) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asked sync.WaitGroup
	current, received := map[uint64]bool{}, make([]bool, len(o.Members))
	for i := range o.Members {
		m := &o.Members[i]
		current[m.ID] = true
		if !mayCopy(m, o.Now) {
			continue
		}
		asked.Go(func() {
			err := watchdog.Guard(func() (err error) {
				received[i], err = receives(ctx, metricsOf(m.Pod))
				return err
			})
			m.CopyUnseen = err != nil
		})
	}
	asked.Wait()
	for i := range o.Members {
		m := &o.Members[i]
		if received[i] {
			c[m.ID] = o.Now
			m.Pod.Answered()
		}
		m.Received = c[m.ID]
	}
	maps.DeleteFunc(c, func(id uint64, _ time.Time) bool { return len(o.Members) > 0 && !current[id] })
}
