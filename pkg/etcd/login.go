// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Credentials are the name and the password of a user of etcd. For all that an operator does,
// the user needs the role root.
type Credentials struct{ Username, Password string }

// String hides the password.
func (c Credentials) String() string { return c.Username + " with a password" }

// GoString hides the password.
func (c Credentials) GoString() string { return c.String() }

const (
	// LoginTimeout bounds a login through one member, whatever is left of the time of the
	// request that needs it. A fast member takes a tenth of a second of computing time for it
	// (bcrypt). One with a small CPU limit takes seconds.
	LoginTimeout = 5 * time.Second
	// logins is how often one request logs in. A member that lags does not know a token of
	// another member yet.
	logins = 3
	// loginPause is the time before credentials that etcd has refused are tried again. Each
	// attempt costs etcd computing time (bcrypt), and a line in its log.
	loginPause = 15 * time.Second
)

// login obtains tokens of a user, for all connections of a Client. A token is valid at all
// members. A learner accepts tokens and issues none. etcd's own client would log in before New
// returns, and separately for each member.
type login struct {
	Credentials
	turn chan struct{} // who holds its only value may log in

	mu      sync.Mutex // guards all below
	token   string
	refusal error
	retryAt time.Time
	members map[*grpc.ClientConn]bool
}

func newLogin(c Credentials) *login {
	return &login{Credentials: c, turn: make(chan struct{}, 1), members: map[*grpc.ClientConn]bool{}}
}

// options make a connection show the token, and obtain another one.
func (l *login) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithPerRPCCredentials(l), grpc.WithChainUnaryInterceptor(l.intercept, l.discern), grpc.WithChainStreamInterceptor(l.precede),
	}
}

// GetRequestMetadata returns the token of a request.
func (l *login) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, _ := l.current()
	if token == "" {
		return nil, nil //nolint:nilnil // no metadata
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: token}, nil
}

// RequireTransportSecurity allows connections in plain text: whether to encrypt is the user's
// decision.
func (l *login) RequireTransportSecurity() bool { return false }

// discern says that etcd asks for a user, if it refuses a request without a token. With TLS, etcd
// takes the common name of the certificate as the user of such a request. It finds no user of this
// name, or denies it the permission. A change of users may concern one that does not exist.
func (l *login) discern(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	token, _ := l.current()
	err := mapped(invoke(ctx, method, req, reply, cc, opts...))
	ofUsers := strings.HasPrefix(method, "/etcdserverpb.Auth/")
	switch {
	case token != "" || strings.HasSuffix(method, "/Authenticate"):
	case LacksRole(err), refusedWith(err, rpctypes.ErrUserNotFound) && !ofUsers:
		return rpctypes.ErrGRPCUserEmpty
	}
	return err
}

func (l *login) current() (token string, refusal error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusal != nil && time.Now().Before(l.retryAt) {
		refusal = l.refusal
	}
	return l.token, refusal
}

// intercept repeats a request for which etcd wants another token.
func (l *login) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if strings.HasSuffix(method, "/Authenticate") {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	l.know(cc, true)
	for attempt := 0; ; attempt++ {
		token, _ := l.current()
		err := invoke(ctx, method, req, reply, cc, opts...)
		if attempt == logins || !wantsToken(err) {
			return err
		}
		if err := l.renew(ctx, cc, token); err != nil {
			return err
		}
	}
}

// precede logs in before a stream, which can't be repeated.
func (l *login) precede(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, begin grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if token, _ := l.current(); token == "" {
		if err := l.renew(ctx, cc, token); err != nil {
			return nil, err
		}
	}
	return begin(ctx, desc, cc, method, opts...)
}

// wantsToken reports whether a request failed for lack of a token, or because its token has
// ended: after five minutes without use, after a restart of the member, or after any change of
// users and roles.
func wantsToken(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision)
}

// renew logs in, unless another request has done so since it used a token.
func (l *login) renew(ctx context.Context, first *grpc.ClientConn, used string) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if token, refusal := l.current(); refusal != nil || token != used {
		return refusal
	}
	var err error
	for _, cc := range l.order(first) {
		var token string
		if token, err = l.ask(ctx, cc); err == nil {
			l.hold(token, nil)
			return nil
		}
		if final(err) {
			l.hold("", err)
			return err
		}
		if ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded {
			return err // without a quorum, it is the same at all members
		}
	}
	return err
}

// ask logs in through one member.
func (l *login) ask(ctx context.Context, cc *grpc.ClientConn) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), LoginTimeout)
	defer cancel()
	resp, err := etcdserverpb.NewAuthClient(cc).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: l.Username, Password: l.Password})
	if errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled) {
		return "", nil
	}
	return resp.GetToken(), err
}

// final reports whether etcd has refused the credentials themselves. All members would.
func final(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrAuthFailed) || errors.Is(err, rpctypes.ErrPermissionDenied)
}

func (l *login) hold(token string, refusal error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.token, l.refusal, l.retryAt = token, refusal, time.Now().Add(loginPause)
}

// know adds or removes a member through which the user can log in.
func (l *login) know(cc *grpc.ClientConn, there bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if there {
		l.members[cc] = true
	} else {
		delete(l.members, cc)
	}
}

// order returns the members, the first before all others.
func (l *login) order(first *grpc.ClientConn) []*grpc.ClientConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []*grpc.ClientConn{first}
	for cc := range l.members {
		if cc != first {
			list = append(list, cc)
		}
	}
	return list
}
