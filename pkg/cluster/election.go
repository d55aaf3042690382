// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// electionPatience is how long a cluster may be without a leader that was available
// before, until it counts as one that isn't. Members vote within one to two seconds
// after they have lost their leader (etcd's --election-timeout), within milliseconds
// when it left in an orderly way, and who writes then waits a moment for the answer.
const electionPatience = 3 * time.Second

// leaderless tells since when a majority of the voters has answered and none of
// them has led to a leader; before is what it told of the look before. It is zero
// where they do, and where too few answer to elect one.
func leaderless(o *observation, before time.Time) time.Time {
	voters := o.voters()
	switch {
	case o.quorum || len(voters) == 0 || count(voters, memberState.answers) < etcd.Quorum(len(voters)):
		return time.Time{}
	case before.IsZero():
		return o.now
	}
	return before
}

// electing tells whether the members are likely to be voting.
func (o *observation) electing() bool {
	return !o.leaderlessSince.IsZero() && o.now.Sub(o.leaderlessSince) < electionPatience
}
