// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package survivor gives the data of an etcd that has restarted without a quorum. Such an etcd
// never serves clients, so nobody could take a backup from it.
//
// A Server runs beside etcd, in an ephemeral container of the same pod. It answers two requests of
// etcd's Maintenance API, Status and Snapshot, as etcd would without a quorum. It also answers
// Authenticate, if etcd asks for a user. It reads etcd's files and its metrics, and writes nothing.
package survivor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	// listenPause is the pause before another attempt to listen.
	listenPause = 2 * time.Second
	// watchPause is the pause between two looks at the metrics.
	watchPause = 500 * time.Millisecond
)

// The bounds of pings are etcd's own (embed.DefaultGRPCKeepAlive…). A client pings while its store
// is slow to take the snapshot. By default, gRPC would end the connection of a client that does so
// more than once in five minutes.
const (
	pingsAtLeastApart = 5 * time.Second
	clientsPinged     = time.Minute // sooner than etcd: a stream of a client that is gone holds a file
	pongsWithin       = 20 * time.Second
)

// Server gives the data of one member. Its fields are set before Serve or Run.
type Server struct {
	// DataDir is etcd's data directory, which holds the directory member.
	DataDir string
	// Listen is the address on which Run serves, such as :2382.
	Listen string
	// Metrics is the host and the port where etcd serves its metrics in plain text.
	Metrics string
	// Version of etcd, such as 3.6.16, for as long as the metrics have not named one.
	Version string
	// Cert, Key and CA are files in PEM: the server's certificate, its key, and the CAs of the
	// clients' certificates. The server reads them at each handshake. All empty: plain text, and no
	// certificates of clients.
	Cert, Key, CA string
	// Log gets what a person should know.
	Log *logrus.Entry
}

// Run listens and serves until ctx ends. It ends for no other reason, because nobody can restart
// an ephemeral container: after a failure, it logs the error and tries again.
func (s *Server) Run(ctx context.Context) {
	for ctx.Err() == nil {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
		if err == nil {
			s.Log.Infof("serving the data in %s on %s", s.DataDir, l.Addr())
			err = s.Serve(ctx, l)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		s.Log.WithError(err).Errorf("serve on %s: trying again in %v", s.Listen, listenPause)
		pause := time.NewTimer(listenPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// Serve serves until ctx ends. It then cuts open streams, and waits for its goroutines. It closes
// the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	svc := &service{
		Server:  s,
		metrics: &watch{address: s.Metrics, version: s.Version},
		tokens:  newTokens(),
		turn:    make(chan struct{}, 1),
	}
	server := grpc.NewServer(svc.options()...)
	etcdserverpb.RegisterMaintenanceServer(server, maintenance{service: svc})
	etcdserverpb.RegisterAuthServer(server, authentication{service: svc})

	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	others.Go(func() { svc.metrics.run(ctx) })
	others.Go(func() {
		<-ctx.Done()
		server.Stop()
	})
	if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err)
	}
	return nil
}

// service is what the methods share while one Serve runs.
type service struct {
	*Server
	metrics *watch
	tokens  *tokens
	turn    chan struct{} // who fills it may compare a password

	mu     sync.Mutex // guards logged
	logged string     // the last trouble
}

func (s *service) options() []grpc.ServerOption {
	opts := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAtLeastApart}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: clientsPinged, Timeout: pongsWithin}),
		// A linearizable read ends at once: pkg/snapshot then knows that there is no quorum. It would
		// repeat a read that fails for lack of a leader.
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return errNotServed }),
		// Stop waits for the handlers.
		grpc.WaitForHandlers(true),
	}
	if s.Cert != "" {
		opts = append(opts, grpc.Creds(credentials.NewTLS(s.tls())))
	}
	return opts
}

var errNotServed = status.Error(codes.Unimplemented, "this server only gives the data of a member without a quorum: it answers Status, Snapshot and Authenticate")

// unavailable says why the data can't be given, to the client, and once to the log.
func (s *service) unavailable(err error) error {
	text := err.Error()
	s.mu.Lock()
	news := s.logged != text
	s.logged = text
	s.mu.Unlock()
	if news {
		s.Log.Error(text)
	}
	return status.Error(codes.Unavailable, strings.ToValidUTF8(text, "?"))
}
