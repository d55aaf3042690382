// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// leaderless returns since when a majority of the voters has answered without an agreed
// leader. before is the previous result. It is zero if there is a leader, or if too few voters
// answer to elect one.
func leaderless(o *plan.Observation, before time.Time) time.Time {
	voters := o.Voters()
	switch {
	case o.Quorum || len(voters) == 0 || plan.Count(voters, plan.MemberState.Answers) < etcd.Quorum(len(voters)):
		return time.Time{}
	case before.IsZero():
		return o.Now
	}
	return before
}
