// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// AddMember adds a member with this peer URL, as a learner or with a vote.
func (c *Conn) AddMember(ctx context.Context, peerURL string, learner bool) (Member, error) {
	add := c.cli.MemberAdd
	if learner {
		add = c.cli.MemberAddAsLearner
	}
	resp, err := add(ctx, []string{peerURL})
	if err != nil {
		return Member{}, fmt.Errorf("member add %s through %s: %w", peerURL, c.url, err)
	}
	return memberOf(resp.Member), nil
}

// PromoteMember gives a learner its vote. While the learner is not in sync, IsNotYet is true
// of the error.
func (c *Conn) PromoteMember(ctx context.Context, id uint64) error {
	if _, err := c.cli.MemberPromote(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrMemberNotLearner) {
		return fmt.Errorf("member promote %s through %s: %w", FormatID(id), c.url, err)
	}
	return nil
}

// RemoveMember removes a member. It returns no error for one that is not a member.
func (c *Conn) RemoveMember(ctx context.Context, id uint64) error {
	if _, err := c.cli.MemberRemove(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return fmt.Errorf("member remove %s through %s: %w", FormatID(id), c.url, err)
	}
	return nil
}

// MoveLeader transfers leadership to a voter. The Conn must be to the leader.
func (c *Conn) MoveLeader(ctx context.Context, to uint64) error {
	if _, err := c.cli.MoveLeader(ctx, to); err != nil {
		return fmt.Errorf("move leader from %s to %s: %w", c.url, FormatID(to), err)
	}
	return nil
}

// notYet are etcd's refusals that pass with time: a learner is behind, a member joined less
// than five seconds ago (etcd's HealthInterval under --strict-reconfig-check), or an election
// runs.
var notYet = []error{
	rpctypes.ErrMemberLearnerNotReady,
	rpctypes.ErrMemberNotEnoughStarted,
	rpctypes.ErrTooManyLearners,
	rpctypes.ErrUnhealthy,
	rpctypes.ErrNoLeader,
	rpctypes.ErrNotLeader,
	rpctypes.ErrLeaderChanged,
	rpctypes.ErrTimeout,
	rpctypes.ErrTimeoutDueToLeaderFail,
	rpctypes.ErrTimeoutDueToConnectionLost,
	rpctypes.ErrNotCapable,
}

// IsNotYet reports whether a refused change is worth a retry a moment later, without any
// fault.
func IsNotYet(err error) bool {
	for _, e := range notYet {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
