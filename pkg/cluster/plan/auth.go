// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// Auth is what the operator knows of etcd's authentication. It asks only if
// spec.auth.enabled has a value.
type Auth struct {
	// Enabled reports whether etcd asks clients for a user; nil: unknown.
	Enabled *bool
	// Unusable says why the Secret holds no user root; "": it does.
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
