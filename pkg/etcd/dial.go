// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	// streamWindow allows 1 GB/s at a round trip of a millisecond. It is how much a member may
	// send ahead of its reader. By default it grows to 16 MiB, and a snapshot fills it if the
	// store is slower. gRPC measures a window that grows with a ping for each answer.
	streamWindow = 1 << 20
	// smallBuffer holds the requests and answers of a poll. gRPC's default is 32 KiB for each
	// direction, which an idle connection keeps.
	smallBuffer = 2 << 10
)

// patient lets a call wait for a connection until its context ends.
var patient = grpc.WaitForReady(true)

// dialOptions are those of a connection to one member. The operator uses gRPC without etcd's
// own client: that client balances between members, retries, and costs each connection
// goroutines and each request allocations.
func (c *Client) dialOptions(scheme string, dial func(context.Context, string) (net.Conn, error)) []grpc.DialOption {
	creds := insecure.NewCredentials()
	switch {
	case scheme != "https": // certificates have no use
	case c.tls == nil:
		creds = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	default:
		creds = credentials.NewTLS(c.tls)
	}
	opts := []grpc.DialOption{
		grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(creds),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0), // the owner closes connections
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		// Connections to a vanished node would never end by themselves.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(streamWindow),
		// gRPC waits up to two minutes between attempts, which suits servers far away. A
		// restarted member must be visible at once.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithSharedWriteBuffer(true),
	}
	if c.small {
		opts = append(opts, grpc.WithReadBufferSize(smallBuffer), grpc.WithWriteBufferSize(smallBuffer))
	}
	return opts
}

// contextError replaces gRPC's error with etcd's, or with that of the context that ended.
func contextError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	err = rpctypes.Error(err)
	if errors.As(err, new(rpctypes.EtcdError)) {
		return err
	}
	if code := status.Code(err); ctx.Err() != nil && (code == codes.DeadlineExceeded || code == codes.Canceled) {
		return ctx.Err()
	}
	return err
}
