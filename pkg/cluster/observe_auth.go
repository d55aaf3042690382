// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// authPeriod is how old the knowledge may be whether etcd asks for a user. Each request for it
// is an entry in the raft log.
const authPeriod = 5 * time.Minute

// authReader remembers whether etcd asks for a user.
type authReader struct {
	enabled bool
	at      time.Time // zero: unknown
}

// observeAuth looks whether authentication is enabled, if the spec wants it one way.
func (c *Cluster) observeAuth(ctx context.Context, o *plan.Observation) {
	if o.Spec.Auth == nil || o.Spec.Auth.Enabled == nil {
		c.auth = authReader{}
		return
	}
	wanted := *o.Spec.Auth.Enabled
	o.Auth = plan.Auth{NewPassword: c.user.next != nil}
	if wanted {
		o.Auth.Unusable = c.userUnusable()
	}
	lowest, known := o.LowestVersion()
	switch silent := known && !lowest.HasAuthStatus(); {
	case silent && wanted:
		o.Auth.Unusable = fmt.Sprintf("etcd %s can't say whether authentication is enabled: set spec.version to 3.5 or later, or remove spec.auth.enabled", lowest)
	case !silent && o.Quorum && c.change != nil && o.Now.Sub(c.auth.at) >= authPeriod:
		c.askForAuth(ctx, o)
	}
	if c.auth.at.IsZero() {
		return
	}
	o.Auth.Enabled = &c.auth.enabled
	switch {
	case o.Quorum:
		c.user.accepted = c.auth.enabled && !c.user.refused
	case c.user.refused: // somebody may have changed the password in etcd
		c.user.accepted = false
	}
	if c.auth.enabled && o.LoginRefused == "" {
		o.LoginRefused = o.Auth.Unusable
	}
}

// askForAuth asks etcd whether authentication is enabled.
func (c *Cluster) askForAuth(ctx context.Context, o *plan.Observation) {
	enabled, err := within(ctx, statusTimeout, c.change.AuthEnabled)
	if err != nil {
		c.log.WithError(err).Debug("it is not known whether etcd asks for a user")
		o.Auth.Unknown = notice.Shorten(err.Error(), 300)
		return
	}
	c.auth = authReader{enabled, o.Now}
}

// userUnusable says why the Secret does not hold the user with which the operator enables
// authentication; "": it does.
func (c *Cluster) userUnusable() string {
	switch {
	case c.user.inUse == (etcd.Credentials{}):
		return cmp.Or(c.user.problem, fmt.Sprintf("the operator has not read Secret %s yet", c.user.secret))
	case c.user.inUse.Username != etcd.Root:
		return fmt.Sprintf("spec.auth.enabled needs the user %s, and Secret %s names another: set its username to %s", etcd.Root, c.user.secret, etcd.Root)
	}
	return ""
}
