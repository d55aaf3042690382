// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "context"

// Commits reports whether the member takes part in a quorum: whether a linearizable
// read through it comes to an end. A member whose disk hangs still answers Status, and
// names itself as the leader, but confirms no read.
// A refusal, as where users have to log in, comes after the confirmation and is an
// answer.
func (c *Conn) Commits(ctx context.Context) error {
	if _, err := c.Revision(ctx); err != nil && (ctx.Err() != nil || IsNotYet(err)) {
		return err
	}
	return nil
}
