// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Endpoint is where one member serves clients.
type Endpoint struct {
	// URL names the member. Its host must match the member's certificate.
	URL string
	// IP is the address to dial. The names of members that have just started do not resolve,
	// nor does any name while the cluster's DNS is down. Empty: the client resolves the URL's
	// host.
	IP string
}

const (
	// streamWindow allows 1 GB/s at a round trip of a millisecond.
	streamWindow = 1 << 20
	// smallBuffer holds the requests and answers of a poll. gRPC's default is 32 KiB for each
	// direction, which an idle connection keeps.
	smallBuffer = 2 << 10

	// connectTime is how long an attempt to connect may take over the network, with the
	// handshake of TLS. The next attempt may reach a restarted member sooner.
	connectTime = 2 * time.Second
	// tunnelTime replaces it where each connection goes through a tunnel, with several round trips
	// more.
	tunnelTime = 5 * time.Second
)

// Client queries and changes the members of one cluster. It keeps one connection to each
// member, because membership and health are requests to one member each. It is safe for concurrent
// use: two writes to one map at a time would end the process, and with it the work for all clusters.
type Client struct {
	dial Dial
	// connect is how long an attempt to connect may take, with the handshake.
	connect time.Duration
	small   bool

	mu    sync.Mutex // guards all below
	tls   *tls.Config
	login *login // nil: no user
	conns map[Endpoint]*Conn
}

// Dial connects to an address, which is a host and a port.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// NewClient returns a client without connections; tlsConfig is nil for plain text.
func NewClient(tlsConfig *tls.Config) *Client {
	c := NewClientThrough(tlsConfig, func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
	c.connect = connectTime
	return c
}

// Small makes new connections hold little memory, and returns c. It must precede their first. It is
// for many members with few and small requests each. A snapshot through such a connection is slow.
func (c *Client) Small() *Client {
	c.small = true
	return c
}

// NewClientThrough returns a client whose connections are made by dial. Its addresses
// are those that the endpoints name as IP, with the port of the URL.
func NewClientThrough(tlsConfig *tls.Config, dial Dial) *Client {
	return &Client{tls: tlsConfig, dial: dial, connect: tunnelTime, conns: map[Endpoint]*Conn{}}
}

// SetTLS closes all connections and sets the configuration for new ones. Open connections
// would use the old certificates until they break, long after the change.
func (c *Client) SetTLS(tlsConfig *tls.Config) {
	c.change(func() { c.tls = tlsConfig })
}

// SetCredentials closes all connections, and makes new ones log in as a user if etcd asks for
// one. The zero Credentials are no user.
func (c *Client) SetCredentials(credentials Credentials) {
	var user *login
	if credentials != (Credentials{}) {
		user = newLogin(credentials)
	}
	c.change(func() { c.login = user })
}

// ShareLogin closes all connections, and makes new ones use the tokens of another client. A member
// that issues none, such as a learner, then needs no other member of its own client.
func (c *Client) ShareLogin(with *Client) {
	user := with.user()
	c.change(func() { c.login = user })
}

func (c *Client) user() *login {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.login
}

// change closes all connections, and sets what new ones use.
func (c *Client) change(set func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retain(nil)
	set()
}

// Conn returns the connection to a member, and dials in the background.
func (c *Client) Conn(ep Endpoint) (*Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.conns[ep]; conn != nil {
		return conn, nil
	}
	u, err := url.Parse(ep.URL)
	if err != nil {
		return nil, fmt.Errorf("client URL of a member: %w", err)
	}
	address := net.JoinHostPort(cmp.Or(ep.IP, u.Hostname()), u.Port())
	conn := &Conn{url: ep.URL, address: address, tls: c.tls, through: c.dial, login: c.login}
	cli, err := clientv3.New(clientv3.Config{
		Endpoints: []string{ep.URL},
		TLS:       c.tls,
		Logger:    zap.NewNop(), // calls return the errors
		// Connections to a vanished node would never end by themselves.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// By default, the client retries a hundred times if a server is down. Here, each pass
		// sends a new request and needs a quick answer.
		MaxUnaryRetries: 1,
		DialOptions:     c.dialOptions(conn.dial),
	})
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", ep.URL, err)
	}
	conn.cli = cli
	c.conns[ep] = conn
	return conn, nil
}

// dialOptions are those of a connection to one member.
func (c *Client) dialOptions(dial func(context.Context, string) (net.Conn, error)) []grpc.DialOption {
	opts := []grpc.DialOption{
		grpc.WithContextDialer(dial),
		// The window is how much a member may send ahead of its reader. By default it
		// grows to 16 MiB, and a snapshot fills it if the store is slower.
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(streamWindow),
		// gRPC waits up to two minutes between attempts, which suits servers far away. A
		// restarted member must be visible at once.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: c.connect,
		}),
	}
	if c.login != nil {
		opts = append(opts, c.login.options()...)
	}
	if c.small {
		opts = append(opts, grpc.WithReadBufferSize(smallBuffer), grpc.WithWriteBufferSize(smallBuffer))
	}
	return opts
}

// Retain closes the connections to all other endpoints.
func (c *Client) Retain(endpoints map[Endpoint]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retain(endpoints)
}

func (c *Client) retain(endpoints map[Endpoint]bool) {
	for ep, conn := range c.conns {
		if !endpoints[ep] {
			conn.close()
			delete(c.conns, ep)
		}
	}
}

// Close closes all connections.
func (c *Client) Close() { c.Retain(nil) }
