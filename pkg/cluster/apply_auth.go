// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// enableAuth gives the user in etcd the password in the Secret, and makes etcd ask for it. The
// client already has the password.
func (c *Cluster) enableAuth(ctx context.Context) error {
	c.auth = authReader{}
	err := c.onMember(ctx, c.change, changeTimeout, func(ctx context.Context, conn Member) error { return conn.EnableAuth(ctx, c.user.inUse.Password) })
	if err == nil {
		c.notices.authEnabled(c.user.secret)
	}
	return err
}

func (c *Cluster) disableAuth(ctx context.Context) error {
	c.auth = authReader{}
	err := c.onMember(ctx, c.change, changeTimeout, func(ctx context.Context, conn Member) error { return conn.DisableAuth(ctx) })
	if err == nil {
		c.notices.authDisabled()
	}
	return err
}

// changePassword gives the user in etcd the password in the Secret. From then on, the client
// logs in with it. If etcd no longer accepts the former password, somebody else has changed it
// there.
func (c *Cluster) changePassword(ctx context.Context) error {
	err := c.onMember(ctx, c.change, changeTimeout, func(ctx context.Context, conn Member) error { return conn.ChangePassword(ctx, *c.user.next) })
	switch {
	case err == nil:
		c.notices.passwordChanged(c.user.secret)
	case !etcd.RefusesUser(err):
		return err
	}
	c.useNewPassword()
	return nil
}

// useNewPassword makes the client log in with the password that is in the Secret now.
func (c *Cluster) useNewPassword() {
	c.user.inUse, c.user.next, c.user.accepted = *c.user.next, nil, false
	c.etcd.SetCredentials(c.user.inUse)
}
