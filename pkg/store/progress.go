// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"net"
)

type progressKey struct{}

// WithProgress returns a context in which stores over HTTP report the bytes that they exchange
// with their servers. They call moved with the number of bytes, concurrently. A connection
// reports to the context in which it was made, so use a Store of this context in no other.
func WithProgress(ctx context.Context, moved func(bytes int)) context.Context {
	return context.WithValue(ctx, progressKey{}, moved)
}

// Moved reports progress that no connection shows, if the context asks for it. A volume has no
// connection, and a list of many files takes minutes.
func Moved(ctx context.Context, n int) {
	if moved, wanted := ctx.Value(progressKey{}).(func(int)); wanted {
		moved(n)
	}
}

// Dial makes connections; it has the form of net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Watched returns a Dial whose connections report the bytes that they move, if the context
// asks for it.
func Watched(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		moved, wanted := ctx.Value(progressKey{}).(func(int))
		if err != nil || !wanted {
			return conn, err
		}
		return &watchedConn{Conn: conn, moved: moved}, nil
	}
}

type watchedConn struct {
	net.Conn
	moved func(bytes int)
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.moved(n)
	return n, err
}

func (c *watchedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.moved(n)
	return n, err
}
