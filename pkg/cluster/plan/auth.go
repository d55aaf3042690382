// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// Auth is what the operator knows of etcd's authentication. It asks only if
// spec.auth.enabled has a value.
type Auth struct {
	// Enabled reports whether etcd asks clients for a user; nil: unknown.
	Enabled *bool
	// Unknown is why etcd did not say that at the last attempt; "" if it did.
	Unknown string
	// Unusable says why the operator can't enable authentication, such as a Secret that holds
	// no user root; "": it can.
	Unusable string
	// NewPassword is true if the Secret holds another password than etcd.
	NewPassword bool
}

// followAuth enables or disables authentication as specified, and follows the password. In a
// new cluster it comes before the client Service, so that no client gets in without a user. An
// imported etcd keeps its own until the import is complete.
func followAuth(o *Observation) Step {
	if o.Importing() || o.Spec.Auth == nil || o.Spec.Auth.Enabled == nil || o.Auth.Enabled == nil {
		return nil
	}
	switch want, is := *o.Spec.Auth.Enabled, *o.Auth.Enabled; {
	case want && o.Auth.Unusable != "":
		return nil // the status says so
	case want && !is:
		return EnableAuth{}
	case want && o.Auth.NewPassword:
		return ChangePassword{}
	case !want && is:
		return DisableAuth{}
	}
	return nil
}

// lacksAuth reports whether the spec wants authentication, and etcd is not known to have it
// enabled.
func (o *Observation) lacksAuth() bool {
	auth := o.Spec.Auth
	return auth != nil && auth.Enabled != nil && *auth.Enabled && (o.Auth.Enabled == nil || !*o.Auth.Enabled) && !o.Importing()
}

// holdsBackClients reports whether a cluster gets no client Service and no bridge yet, because
// clients would get in without a user. One that has had its client Service keeps it: its clients
// know it.
func (o *Observation) holdsBackClients() bool {
	return o.lacksAuth() && !o.ClientService.Owned && o.Status.ServiceName == ""
}

// AuthHold says why the operator can't enable authentication; zero if it can, or need not.
// Without a quorum, nobody can.
func (o *Observation) AuthHold() Reason {
	if !o.lacksAuth() || o.Auth.Unusable == "" || !o.Quorum {
		return Reason{}
	}
	why := o.Auth.Unusable
	if o.Auth.Enabled != nil {
		why = "etcd lets clients in without a user. " + why
	}
	if o.holdsBackClients() {
		why += ". Until then, the operator creates no client Service"
		if len(o.Bridges) > 0 {
			why += ", and leads no Service of spec.service.bridges to the members"
		}
	}
	return Reason{AuthenticationHeld, why}
}

// awaitAuth waits until a new cluster may have clients; nil if it may.
func (o *Observation) awaitAuth() Step {
	if !o.holdsBackClients() {
		return nil
	}
	if why := o.AuthHold(); !why.IsZero() {
		return Idle{why}
	}
	why := "for etcd to say whether authentication is enabled, which precedes the client Service"
	if o.Auth.Unknown != "" {
		why += "; look at the logs of the members: " + o.Auth.Unknown
	}
	return Wait{why}
}
