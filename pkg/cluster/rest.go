// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

const (
	// lookTimeout bounds a look. A member that takes longer gets a pass.
	lookTimeout = 500 * time.Millisecond
	// looksInARow is how many looks replace passes before the next pass. The pass asks for
	// what changes without a write: alarms that somebody raises or disarms, and members that
	// somebody adds by hand.
	looksInARow = 3
	// lookSpacing groups looks of several clusters. An idle process that wakes up for one look
	// spends more on waking up than on the look.
	lookSpacing = 500 * time.Millisecond
)

// errMoved means that a member states something else than before.
var errMoved = errors.New("the member states something new")

// rest is the state of a cluster in which nothing moves. Kubernetes' watches report changes of
// its objects. In etcd, a look replaces a pass: one linearizable read through each member. It
// shows that the members run, that a quorum serves, that the leader is the same, and that
// nobody has written. If anything differs, a pass follows at once.
type rest struct {
	// seen is what the last pass or look heard from each member, and settled is true if two
	// passes in a row heard the same. A cluster with writes gets a pass each time: the record
	// must follow them.
	seen    []stated
	settled bool
	// looks is how many looks may follow before the next pass.
	looks int
}

// stated is what one member stated with a confirmed read.
type stated struct {
	through  Member
	position etcd.Position
}

// end makes the next look a pass.
func (r *rest) end() { r.looks = 0 }

// compare notes what the members have stated in a pass.
func (r *rest) compare(answers []answer) {
	before := r.seen
	r.seen = nil
	for _, a := range answers {
		r.seen = append(r.seen, stated{a.conn, a.position})
	}
	r.settled = len(r.seen) > 0 && slices.EqualFunc(before, r.seen, func(b, n stated) bool {
		return b.position == n.position && n.position != etcd.Position{} && n.position.Refusal == nil
	})
}

// mayRest lets looks replace the next passes if there is nothing to do, nothing to wait for,
// and nothing that only a pass would see.
func (c *Cluster) mayRest(o *plan.Observation, s plan.Step) {
	idle, ok := s.(plan.Idle)
	if !ok || idle.Why.Kind != plan.AsSpecified || !c.rest.settled || !quiet(o) {
		return
	}
	if len(c.podWrites)+len(c.deleted)+len(c.deletedVolumes)+len(c.restarting)+len(c.postponed)+len(c.unanswered) == 0 {
		c.rest.looks = looksInARow
	}
}

// quiet reports whether all of a cluster is well.
func quiet(o *plan.Observation) bool {
	ready := func(m plan.MemberState) bool {
		return m.Healthy() && !m.Learner && m.Pod != nil && m.Pod.Ready && !m.Pod.Deleting && m.Err == nil
	}
	return o.Quorum && plan.Count(o.Members, ready) == len(o.Members) && len(o.Pods) == len(o.Members) &&
		len(o.Alarms()) == 0 && len(o.Mislabels) == 0 && o.Blind == "" && len(o.Certificates.Problems) == 0 && o.Refused.Why == "" && o.Accepted == ""
}

// undisturbed reports whether the cluster rests, and a look finds all as it was.
func (c *Cluster) undisturbed(ctx context.Context, now time.Time) bool {
	if c.rest.looks == 0 || c.certificatesDue(now) || c.user.due(now) || c.bridges.due(now) {
		return false
	}
	c.rest.looks--
	if !c.look(ctx) {
		return false
	}
	c.quorum.looked = now
	return true
}

// look asks all members at once.
func (c *Cluster) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	same := make([]bool, len(c.rest.seen))
	ask := func(i int, m stated) {
		same[i] = watchdog.Guard(func() error {
			position, err := m.through.Commits(ctx)
			if err == nil && position != m.position {
				return errMoved
			}
			return err
		}) == nil
	}
	var asked sync.WaitGroup
	for i, m := range c.rest.seen[1:] {
		asked.Go(func() { ask(i+1, m) })
	}
	ask(0, c.rest.seen[0])
	asked.Wait()
	return !slices.Contains(same, false)
}

// untilLook returns the time until the next look. Looks of one cluster are a period apart, and
// the UIDs spread those of all clusters over it, in steps of lookSpacing. The period leaves a look that fails its time,
// so that the pass begins no later than without the look.
func (c *Cluster) untilLook() time.Duration {
	period := c.cfg.Period - lookTimeout
	hash := fnv.New64a()
	hash.Write([]byte(c.obj.UID))
	phase := lookSpacing * time.Duration(hash.Sum64()%uint64(max(1, period/lookSpacing))) // the period is positive
	since := time.Duration(c.cfg.Clock.Now().UnixNano()) % period
	return period - (since-phase+period)%period
}
