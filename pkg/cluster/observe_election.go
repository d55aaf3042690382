// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// leaderless tells since when a majority of the voters has answered and none of
// them has led to a leader; before is what it told of the look before. It is zero
// where they do, and where too few answer to elect one.
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
