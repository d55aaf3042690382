// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// With TLS, etcd knows a client without a token by the name in its certificate.
func TestACertificateOfAnUnknownUserIsNoReasonNotToLogIn(t *testing.T) {
	const change = "/etcdserverpb.Cluster/MemberRemove"
	for name, c := range map[string]struct {
		token, method string
		wants         error
	}{
		"before the login":        {"", change, rpctypes.ErrGRPCUserEmpty},
		"the user lacks the role": {"token", change, rpctypes.ErrGRPCPermissionDenied},
		"the login itself":        {"", "/etcdserverpb.Auth/Authenticate", rpctypes.ErrGRPCPermissionDenied},
	} {
		l := newLogin(Credentials{Username: "root", Password: "p"})
		l.hold(c.token, nil)
		denies := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			return rpctypes.ErrGRPCPermissionDenied
		}
		if err := l.discern(t.Context(), c.method, nil, nil, nil, denies); !errors.Is(err, c.wants) {
			t.Errorf("%s: %v, want %v", name, err, c.wants)
		}
	}
}
