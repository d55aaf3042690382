// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// authentication is etcd's service for users, as far as a client needs it to log in.
type authentication struct {
	etcdserverpb.UnimplementedAuthServer
	*service
}

// Authenticate gives a token to a user with a password, if the database has authentication enabled.
func (a authentication) Authenticate(ctx context.Context, r *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	if err := a.notServing(ctx); err != nil {
		return nil, err
	}
	account, err := a.readAccount(r.Name)
	switch {
	case err != nil:
		return nil, a.unavailable(fmt.Errorf("read the users: %w", err))
	case !account.enabled:
		return nil, rpctypes.ErrGRPCAuthNotEnabled
	case account.user == nil || account.user.GetOptions().GetNoPassword():
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	// A comparison takes a tenth of a second of computing time, which etcd needs too.
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if bcrypt.CompareHashAndPassword(account.user.Password, []byte(r.Password)) != nil {
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	return &etcdserverpb.AuthenticateResponse{Token: a.tokens.issue(r.Name)}, nil
}

// right is who may make a request, if the database has authentication enabled.
type right int

const (
	// anybody is every client that names a user, as etcd's Status demands.
	anybody right = iota
	// administrator is a user with the role root, as etcd's Snapshot demands.
	administrator
)

// permit returns etcd's error for a client that lacks a right.
func (s *service) permit(ctx context.Context, needed right) error {
	name, known := s.user(ctx)
	account, err := s.readAccount(name)
	switch {
	case err != nil:
		return s.unavailable(fmt.Errorf("read the users: %w", err))
	case !account.enabled:
		return nil
	case !known:
		return rpctypes.ErrGRPCInvalidAuthToken
	case name == "":
		return rpctypes.ErrGRPCUserEmpty
	case needed == administrator && !isRoot(account.user):
		return rpctypes.ErrGRPCPermissionDenied
	}
	return nil
}

// user returns who has made a request: the user of its token, or else the common name of the
// client's certificate; "": nobody. known is false if the token is of no user.
func (s *service) user(ctx context.Context) (name string, known bool) {
	if values := metadata.ValueFromIncomingContext(ctx, rpctypes.TokenFieldNameGRPC); len(values) > 0 {
		return s.tokens.user(values[0])
	}
	client, found := peer.FromContext(ctx)
	if !found {
		return "", true
	}
	secure, found := client.AuthInfo.(credentials.TLSInfo)
	if !found || len(secure.State.VerifiedChains) == 0 {
		return "", true
	}
	return secure.State.VerifiedChains[0][0].Subject.CommonName, true
}

// isRoot is false for a user that does not exist.
func isRoot(u *authpb.User) bool { return slices.Contains(u.GetRoles(), etcd.Root) }
