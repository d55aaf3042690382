// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

const (
	// unconnectedPatience is how long the operator leaves it to one member to see its peers as
	// connected. It is twice etcd's HealthInterval, which each new connection has to last.
	unconnectedPatience = 10 * time.Second
	// unconnectedPause is the time without a refusal after which a refusal counts as a new one.
	unconnectedPause = time.Minute
)

// unconnected remembers since when a member has refused changes because it sees too few of its
// peers as connected.
type unconnected struct{ since, last time.Time }

// lasts notes the end of a change at this moment, and reports whether such refusals last.
func (u *unconnected) lasts(err error, now time.Time) bool {
	if !errors.Is(err, rpctypes.ErrUnhealthy) {
		*u = unconnected{}
		return false
	}
	if u.since.IsZero() || now.Sub(u.last) > unconnectedPause {
		u.since = now
	}
	u.last = now
	return now.Sub(u.since) >= unconnectedPatience
}

// onVoter runs a change of the membership through the member that lists it, and through the
// other voters if that one continues to see too few connections.
//
// etcd's --strict-reconfig-check asks the member that takes the request, not the leader, and
// believes one flag for all connections to a peer. After a power loss, an old connection may
// end after the new ones began. The flag then says unconnected until one of the two restarts,
// although raft's messages arrive. Another voter has flags of its own, and its check is as
// strict.
func (c *Cluster) onVoter(ctx context.Context, change func(context.Context, Member) error) error {
	err := c.onMember(ctx, c.change, membershipTimeout, change)
	if !c.unconnected.lasts(err, c.cfg.Clock.Now()) {
		return err
	}
	for _, voter := range c.otherVoters {
		other := c.onMember(ctx, voter, membershipTimeout, change)
		if other == nil {
			c.log.WithError(err).Info("changed the membership through another voter, because the first one sees too few connections")
			return nil
		}
		if !errors.Is(other, rpctypes.ErrUnhealthy) {
			return other
		}
	}
	return err
}
