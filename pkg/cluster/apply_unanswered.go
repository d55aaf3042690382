// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// unansweredFor is how long a membership change that ended with an error may still take
// effect, and then counts as the operator's. etcd applies an accepted proposal once there is a
// leader, even after the request's timeout.
const unansweredFor = time.Minute

// unanswered are membership changes that ended with an error, by member. Some of them take
// effect: the answer may be lost with a leader.
type unanswered map[string]unansweredChange

type unansweredChange struct {
	made func(*plan.Observation) bool // whether the membership shows it
	tell func()
	at   time.Time
}

// changed reports an answered change, and remembers an unanswered one.
func (c *Cluster) changed(what string, err error, made func(*plan.Observation) bool, tell func()) {
	switch {
	case err == nil:
		delete(c.unanswered, what)
		tell()
	case !errors.Is(err, errNoQuorum):
		c.unanswered[what] = unansweredChange{made, tell, c.cfg.Clock.Now()}
	}
}

// tellUnanswered reports changes that took effect without an answer.
func (c *Cluster) tellUnanswered(o *plan.Observation) {
	if !o.Quorum {
		return
	}
	for _, what := range slices.Sorted(maps.Keys(c.unanswered)) {
		switch change := c.unanswered[what]; {
		case o.Now.Sub(change.at) > unansweredFor:
			delete(c.unanswered, what)
		case change.made(o):
			delete(c.unanswered, what)
			change.tell()
		}
	}
}
