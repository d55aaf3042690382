// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// unmapped are errors of etcd's auth store that some releases return unchanged: 3.5 for a snapshot or a
// hash, and all of them for a user without a password.
var unmapped = map[string]error{
	"auth: user name is empty":        rpctypes.ErrGRPCUserEmpty,
	"auth: user not found":            rpctypes.ErrGRPCUserNotFound,
	"auth: permission denied":         rpctypes.ErrGRPCPermissionDenied,
	"auth: invalid auth token":        rpctypes.ErrGRPCInvalidAuthToken,
	"auth: revision in header is old": rpctypes.ErrGRPCAuthOldRevision,
	"auth: authentication failed, password was given for no password user": rpctypes.ErrGRPCAuthFailed,
}

// mapped returns what other releases would return in place of an error; the error itself if they return
// the same.
func mapped(err error) error {
	var answer interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answer) {
		if usual := unmapped[answer.GRPCStatus().Message()]; usual != nil {
			return usual
		}
	}
	return err
}

// refusedWith reports whether a member refused a request with one of the errors.
func refusedWith(err error, refusals ...error) bool {
	usual := mapped(err)
	for _, refusal := range refusals {
		if errors.Is(err, refusal) || errors.Is(rpctypes.Error(usual), refusal) {
			return true
		}
	}
	return false
}

// AsksForUser reports whether a request failed because authentication is enabled and the request named
// no user. With TLS, etcd takes the common name of the certificate as the user, and may find none.
func AsksForUser(err error) bool {
	return refusedWith(err, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound)
}

// RefusesUser reports whether etcd refused the name or the password of the user.
func RefusesUser(err error) bool { return refusedWith(err, rpctypes.ErrAuthFailed) }

// LacksRole reports whether the user may not do what was asked. The role root may do all.
func LacksRole(err error) bool { return refusedWith(err, rpctypes.ErrPermissionDenied) }

// IsDenied reports whether a member refused a call because authentication is enabled and the
// client is unknown, or lacks the permission.
func IsDenied(err error) bool {
	return refusedWith(err, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken)
}
