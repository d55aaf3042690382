// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

// Position is what a member states with the answer to a linearizable read. While all voters
// state the same as before, they have the same leader, and nobody has written.
type Position struct {
	ClusterID uint64
	MemberID  uint64
	// Term is that of the leader who confirmed the read. A term has one leader at most.
	Term     uint64
	Revision int64
	// Refusal is why etcd refused the result of the read, which a quorum had confirmed; nil: it did not.
	// All else is zero then. It is a rpctypes.EtcdError, so that positions are comparable.
	Refusal error
}

// ofLearner is how a learner refuses requests that it does not support.
var ofLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// Commits reports whether the member takes part in a quorum: whether a linearizable read
// through it succeeds. A member whose disk hangs still answers Status, and names itself as the
// leader, but confirms no read. If etcd refused the read's result, the position says so.
func (c *Conn) Commits(ctx context.Context) (Position, error) {
	p, err := c.position(ctx)
	if err == nil {
		return p, nil
	}
	if refusal, ok := refusalOf(err); ok {
		return Position{Refusal: refusal}, nil
	}
	return Position{}, err
}

// position makes a linearizable read of nothing.
func (c *Conn) position(ctx context.Context) (Position, error) {
	// The client's own Get would wait until ctx ends if the server is down.
	resp, err := etcdserverpb.NewKVClient(c.cli.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err != nil {
		return Position{}, fmt.Errorf("linearizable read from %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	h := resp.GetHeader()
	return Position{ClusterID: h.GetClusterId(), MemberID: h.GetMemberId(), Term: h.GetRaftTerm(), Revision: h.GetRevision()}, nil
}

// refusalOf returns why etcd confirmed a linearizable read and then refused its result, as it
// does if users must log in or the database is corrupt. Other errors confirm nothing. A
// deadline is one of them: the server's own may end the read before the caller's context ends.
// A learner refuses such a read without asking others.
func refusalOf(err error) (refusal rpctypes.EtcdError, ok bool) {
	if !errors.As(err, &refusal) || IsNotYet(err) || errors.Is(err, ofLearner) {
		return refusal, false
	}
	switch refusal.Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.FailedPrecondition, codes.DataLoss:
		return refusal, true
	default:
		return refusal, false
	}
}
