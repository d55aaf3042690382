// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// With TLS, etcd knows a client without a token by the name in its certificate. 3.5 returns some errors
// of its users unchanged, for a hash for example.
func TestACertificateOfAnUnknownUserIsNoReasonNotToLogIn(t *testing.T) {
	const change, hash, grant = "/etcdserverpb.Cluster/MemberRemove", "/etcdserverpb.Maintenance/HashKV", "/etcdserverpb.Auth/UserGrantRole"
	unmapped := func(text string) error { return status.Error(codes.Unknown, text) }
	for name, c := range map[string]struct {
		token, method string
		says, wants   error
	}{
		"before the login":              {"", change, rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCUserEmpty},
		"nobody has this name":          {"", change, rpctypes.ErrGRPCUserNotFound, rpctypes.ErrGRPCUserEmpty},
		"nobody has it in 3.5":          {"", hash, unmapped("auth: user not found"), rpctypes.ErrGRPCUserEmpty},
		"no certificate in 3.5":         {"", hash, unmapped("auth: user name is empty"), rpctypes.ErrGRPCUserEmpty},
		"a token ends in 3.5":           {"token", hash, unmapped("auth: invalid auth token"), rpctypes.ErrGRPCInvalidAuthToken},
		"the user lacks the role":       {"token", change, rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCPermissionDenied},
		"there is no user to change":    {"", grant, rpctypes.ErrGRPCUserNotFound, rpctypes.ErrGRPCUserNotFound},
		"the login itself":              {"", "/etcdserverpb.Auth/Authenticate", rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCPermissionDenied},
		"the user has no password":      {"", "/etcdserverpb.Auth/Authenticate", unmapped("auth: authentication failed, password was given for no password user"), rpctypes.ErrGRPCAuthFailed},
		"an error of something else":    {"", change, unmapped("auth"), unmapped("auth")},
		"a member that says no error":   {"", change, nil, nil},
		"a member that does not answer": {"token", change, context.DeadlineExceeded, context.DeadlineExceeded},
	} {
		l := newLogin(Credentials{Username: "root", Password: "p"})
		l.hold(c.token, nil)
		says := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return c.says }
		if err := l.discern(t.Context(), c.method, nil, nil, nil, says); !errors.Is(err, c.wants) {
			t.Errorf("%s: %v, want %v", name, err, c.wants)
		}
	}
}

// Without a user, nobody translates the errors.
func TestARefusalIsKnownInEachForm(t *testing.T) {
	for _, err := range []error{rpctypes.ErrUserNotFound, status.Error(codes.Unknown, "auth: user not found"), status.Error(codes.Unknown, "auth: user name is empty")} {
		if err = fmt.Errorf("snapshot: %w", err); !IsDenied(err) || !AsksForUser(err) || RefusesUser(err) || LacksRole(err) {
			t.Errorf("%v: it is denied: %t, asks for a user: %t", err, IsDenied(err), AsksForUser(err))
		}
	}
	if err := status.Error(codes.Unknown, "auth: permission denied"); !IsDenied(err) || AsksForUser(err) || !LacksRole(err) {
		t.Errorf("%v: it is denied: %t, asks for a user: %t", err, IsDenied(err), AsksForUser(err))
	}
	if err := errors.New("auth: user not found"); IsDenied(err) || AsksForUser(err) {
		t.Errorf("%v does not come from a member", err)
	}
}
