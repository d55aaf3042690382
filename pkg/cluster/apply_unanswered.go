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

// unansweredFor is how long a change of the membership that was answered by an error
// may be made nevertheless, and is told as the operator's. A proposal that etcd has
// taken is made when a leader is found, also after who asked for it has given up.
const unansweredFor = time.Minute

// unanswered are changes of the membership that were answered by an error, by what
// they change. Some of them are made: a leader that is lost takes the answer along.
type unanswered map[string]unansweredChange

type unansweredChange struct {
	made func(*plan.Observation) bool // whether the membership shows it
	tell func()
	at   time.Time
}

// changed tells of a change that was answered, and keeps in mind one that was not.
func (c *Cluster) changed(what string, err error, made func(*plan.Observation) bool, tell func()) {
	switch {
	case err == nil:
		delete(c.unanswered, what)
		tell()
	case !errors.Is(err, errNoQuorum):
		c.unanswered[what] = unansweredChange{made, tell, c.cfg.Clock.Now()}
	}
}

// tellUnanswered tells of what was made without an answer.
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
