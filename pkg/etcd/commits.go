// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
)

// Commits reports whether the member takes part in a quorum: whether a linearizable read
// through it succeeds. A member whose disk hangs still answers Status, and names itself as the
// leader, but confirms no read.
func (c *Conn) Commits(ctx context.Context) error {
	_, err := c.Revision(ctx)
	if isAnswer(err) {
		return nil
	}
	return err
}

// isAnswer reports whether etcd confirmed a linearizable read and then refused its result, as
// it does if users must log in or the database is corrupt. Other errors confirm nothing. A
// deadline is one of them: the server's own may end the read before the caller's context ends.
func isAnswer(err error) bool {
	if err == nil {
		return true
	}
	var refusal rpctypes.EtcdError
	if !errors.As(err, &refusal) || IsNotYet(err) {
		return false
	}
	switch refusal.Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.FailedPrecondition, codes.DataLoss:
		return true
	default:
		return false
	}
}
