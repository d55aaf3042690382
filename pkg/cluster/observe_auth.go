// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// authPeriod is how old the knowledge may be whether etcd asks for a user. Each request for it
// is an entry in the raft log.
const authPeriod = 5 * time.Minute

// authReader remembers whether etcd asks for a user.
type authReader struct {
	enabled bool
	at      time.Time // zero: unknown
}

// observeAuth asks whether authentication is enabled, if the spec wants it one way.
func (c *Cluster) observeAuth(ctx context.Context, o *plan.Observation) {
	if o.Spec.Auth == nil || o.Spec.Auth.Enabled == nil {
		c.auth = authReader{}
		return
	}
	if o.Quorum && c.change != nil && o.Now.Sub(c.auth.at) >= authPeriod {
		enabled, err := within(ctx, statusTimeout, c.change.AuthEnabled)
		if err != nil {
			c.log.WithError(err).Debug("it is not known whether etcd asks for a user")
			return
		}
		c.auth = authReader{enabled, o.Now}
	}
	if c.auth.at.IsZero() {
		return
	}
	o.Auth = plan.Auth{Enabled: &c.auth.enabled, NewPassword: c.user.next != nil}
	switch {
	case o.Quorum:
		c.user.accepted = c.auth.enabled
	case c.user.refused: // somebody may have changed the password in etcd
		c.user.accepted = false
	}
	if !*o.Spec.Auth.Enabled {
		return
	}
	switch {
	case c.user.inUse == (etcd.Credentials{}):
		o.Auth.Unusable = c.user.problem
	case c.user.inUse.Username != etcd.Root:
		o.Auth.Unusable = fmt.Sprintf("spec.auth.enabled needs the user %s, and Secret %s names another: set its username to %s", etcd.Root, c.user.secret, etcd.Root)
	}
	if o.LoginRefused == "" {
		o.LoginRefused = o.Auth.Unusable
	}
}
