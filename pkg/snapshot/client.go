// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"crypto/tls"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Client connects to the members of a cluster. One goroutine uses it.
type Client interface {
	Conn(ep etcd.Endpoint) (Conn, error)
	// Retain closes the connections to all other endpoints.
	Retain(endpoints map[etcd.Endpoint]bool)
	// Close closes all connections. A concurrent Next of a Stream then returns an error.
	Close()
}

// Conn is the connection to one member. Its calls may run concurrently.
type Conn interface {
	Status(ctx context.Context) (etcd.Status, error)
	// Revision returns the revision of the data by a linearizable read.
	Revision(ctx context.Context) (int64, error)
	// Connections returns how often the connection was made, since a broken one is replaced
	// silently.
	Connections() int64
	// Snapshot opens the stream of the member's database, which ends with ctx. size is in
	// bytes, with the sha256 at the end.
	Snapshot(ctx context.Context) (stream Stream, size int64, err error)
}

// Stream is a member's database, followed by its sha256.
type Stream interface {
	// Next returns the next piece. At the end of the stream the error is io.EOF.
	Next() ([]byte, error)
}

// overNetwork returns etcd's own client.
func overNetwork(config *tls.Config, user etcd.Credentials) Client {
	client := etcd.NewClient(config)
	client.SetCredentials(user)
	return networkClient{client}
}

type networkClient struct{ *etcd.Client }

func (c networkClient) Conn(ep etcd.Endpoint) (Conn, error) {
	conn, err := c.Client.Conn(ep)
	if err != nil {
		return nil, err
	}
	return networkConn{conn}, nil
}

type networkConn struct{ *etcd.Conn }

func (c networkConn) Snapshot(ctx context.Context) (Stream, int64, error) {
	stream, err := c.Conn.Snapshot(ctx)
	if err != nil {
		return nil, 0, err
	}
	return stream, stream.Size, nil
}
