// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/usersecret"
)

// userReader reads the Secret with the operator's user of etcd, and remembers its content.
type userReader struct {
	secret, version string
	readAt          time.Time
	// problem says why the Secret is unusable, and what to do.
	problem string
	inUse   etcd.Credentials
	// next has a password that the operator has to give the user in etcd; nil: none.
	next *etcd.Credentials
	// refused is true after etcd has refused the user: somebody may be correcting the Secret.
	// accepted is true after etcd has asked for a user and taken this one.
	refused, accepted bool
}

// due reports whether the content of the Secret is old, or in doubt.
func (r *userReader) due(now time.Time) bool {
	age := now.Sub(r.readAt)
	return r.secret != "" && (age >= certPeriod || age >= certRetry && (r.refused || r.problem != ""))
}

// observeUser reads the Secret of spec.auth if it is due, and makes the client log in as its
// user. A Secret that becomes unusable does not affect what is in use.
func (c *Cluster) observeUser(ctx context.Context, o *plan.Observation) error {
	r, name := &c.user, o.Spec.CredentialsSecret()
	if c.ends(o) || name == r.secret && !r.due(o.Now) {
		return nil
	}
	if name == "" {
		if r.inUse != (etcd.Credentials{}) {
			c.etcd.SetCredentials(etcd.Credentials{})
		}
		*r = userReader{}
		return nil
	}
	secret, err := c.cfg.Kube.CoreV1().Secrets(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
	before := r.problem
	r.problem = ""
	switch {
	case apierrors.IsNotFound(err):
		r.problem = fmt.Sprintf("Secret %s (spec.auth.credentialsSecret) does not exist: create it, %s", name, usersecret.Wanted)
	case apierrors.IsForbidden(err):
		r.problem = fmt.Sprintf("Secret %s (spec.auth.credentialsSecret) can't be read by the operator: grant its service account to get Secrets", name)
	case err != nil && (ctx.Err() != nil || name != r.secret):
		return fmt.Errorf("read Secret %s with the user of etcd: %w", name, err)
	case err != nil:
		r.problem = before // this says nothing about the Secret
		c.log.WithError(err).WithField("secret", name).Warn("can't read the Secret with the user of etcd just now")
	}
	r.secret, r.readAt = name, o.Now
	if err != nil {
		return nil
	}
	version := string(secret.UID) + "/" + secret.ResourceVersion
	if version == r.version {
		return nil
	}
	user, err := usersecret.Of(secret)
	if err != nil {
		r.problem = err.Error()
		return nil
	}
	r.version, r.refused, r.next = version, false, nil
	if enabled := o.Spec.Auth.Enabled; enabled != nil && *enabled && r.accepted && user.Username == r.inUse.Username && user != r.inUse {
		r.next = &user // etcd still has the former password
		return nil
	}
	if user != r.inUse {
		r.accepted = false
		r.inUse = user
		c.etcd.SetCredentials(user)
		c.log.WithField("secret", name).Info("logging in to etcd as the user in the Secret, if etcd asks for one")
	}
	return nil
}

// seeUser notes what the members' answers say about the user.
func (c *Cluster) seeUser(o *plan.Observation, answers []answer) {
	asks, refuses := false, false
	for _, a := range answers {
		if a.err == nil {
			c.user.refused = false
			return
		}
		asks = asks || etcd.AsksForUser(a.err)
		refuses = refuses || etcd.RefusesUser(a.err)
	}
	c.user.refused = refuses
	if refuses && c.user.next != nil { // etcd has the new password, and its answer was lost
		c.useNewPassword()
	}
	if o.LoginRefused = c.whyRefused(asks, refuses); o.Blind == "" {
		o.Blind = o.LoginRefused
	}
}

// seeReads notes what the members' reads say about the user. With TLS, etcd takes the name in the
// certificate as the user. It shows its status and its members to each client with a certificate, and
// refuses all else.
func (c *Cluster) seeReads(o *plan.Observation, answers []answer) {
	asks, refuses := false, false
	for _, a := range answers {
		why := a.position.Refusal
		if why == nil && a.position != (etcd.Position{}) {
			return
		}
		asks = asks || etcd.AsksForUser(why) || etcd.LacksRole(why) && c.user.inUse == (etcd.Credentials{})
		refuses = refuses || etcd.RefusesUser(why)
	}
	if refuses && c.user.next != nil {
		return // etcd may have the new password already: the next change finds out
	}
	c.user.refused = c.user.refused || refuses
	o.LoginRefused = cmp.Or(o.LoginRefused, c.whyRefused(asks, refuses))
}

// whyRefused says what a person has to do if etcd asks for a user, or refuses this one; "" if it does
// neither.
func (c *Cluster) whyRefused(asks, refuses bool) string {
	switch {
	case refuses && c.user.problem == "":
		return fmt.Sprintf("etcd refuses the user in Secret %s (spec.auth.credentialsSecret): correct the name and the password in the Secret, or the user's password in etcd", c.user.secret)
	case !asks && !refuses:
		return ""
	case c.user.problem != "":
		return c.user.problem
	}
	return "etcd has authentication enabled, and spec.auth names no user: create a Secret " + usersecret.Wanted + ", and name it in spec.auth.credentialsSecret"
}
