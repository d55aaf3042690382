// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Root is the name of the user, and of the role, that etcd demands before it enables
// authentication.
const Root = "root"

// AuthEnabled reports whether etcd asks clients for a user. The quorum agrees on the answer, by
// an entry in the raft log. etcd has this request since 3.5.
func (c *Conn) AuthEnabled(ctx context.Context) (bool, error) {
	resp, err := c.cli.AuthStatus(ctx)
	if err != nil {
		return false, fmt.Errorf("auth status from %s: %w", c.url, err)
	}
	return resp.Enabled, nil
}

// EnableAuth creates the user root with a password, or gives it that password, and enables
// authentication. A caller may repeat it, however it ended.
func (c *Conn) EnableAuth(ctx context.Context, password string) error {
	_, err := c.cli.UserAdd(ctx, Root, password)
	if errors.Is(err, rpctypes.ErrUserAlreadyExist) {
		_, err = c.cli.UserChangePassword(ctx, Root, password)
	}
	if err == nil {
		_, err = c.cli.UserGrantRole(ctx, Root, Root)
	}
	if err == nil {
		_, err = c.cli.AuthEnable(ctx)
	}
	if err != nil {
		return fmt.Errorf("enable authentication through %s: %w", c.url, err)
	}
	return nil
}

// DisableAuth disables authentication. Users, roles and passwords stay.
func (c *Conn) DisableAuth(ctx context.Context) error {
	if _, err := c.cli.AuthDisable(ctx); err != nil && !errors.Is(err, rpctypes.ErrAuthNotEnabled) {
		return fmt.Errorf("disable authentication through %s: %w", c.url, err)
	}
	return nil
}

// ChangePassword gives a user another password. All tokens end.
func (c *Conn) ChangePassword(ctx context.Context, user Credentials) error {
	if _, err := c.cli.UserChangePassword(ctx, user.Username, user.Password); err != nil {
		return fmt.Errorf("change the password of user %s through %s: %w", user.Username, c.url, err)
	}
	return nil
}
