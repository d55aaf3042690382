// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
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

// Status is what one member reports of itself.
type Status struct {
	MemberID  uint64
	ClusterID uint64
	// LeaderID is 0 if the member knows no leader.
	LeaderID uint64
	Version  string
	Learner  bool
	DBSize   int64
	DBInUse  int64
	// DBQuota is the database size at which the member refuses writes; 0: unknown. etcd
	// reports it since 3.6.
	DBQuota   int64
	RaftTerm  uint64
	RaftIndex uint64
	// RaftApplied is the last entry that the member has applied.
	RaftApplied uint64
	// Revision of the data that the member holds.
	Revision int64
	// Alarms are those of all members, as far as this one knows them.
	Alarms []Alarm
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
// member, because membership and health are requests to one member each. Only the calls of a
// Conn are safe for concurrent use.
type Client struct {
	tls  *tls.Config
	dial Dial
	// connect is how long an attempt to connect may take, with the handshake.
	connect time.Duration
	small   bool
	login   *login // nil: no user
	conns   map[Endpoint]*Conn
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

// Small makes new connections hold little memory, and returns c. It is for many members with
// few and small requests each. A snapshot through such a connection is slow.
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
	c.Close()
	c.tls = tlsConfig
}

// SetCredentials closes all connections, and makes new ones log in as a user if etcd asks for
// one. The zero Credentials are no user.
func (c *Client) SetCredentials(credentials Credentials) {
	c.Close()
	c.login = nil
	if credentials != (Credentials{}) {
		c.login = newLogin(credentials)
	}
}

// ShareLogin closes all connections, and makes new ones use the tokens of another client. A member
// that issues none, such as a learner, then needs no other member of its own client.
func (c *Client) ShareLogin(with *Client) {
	c.Close()
	c.login = with.login
}

// Conn returns the connection to a member, and dials in the background.
func (c *Client) Conn(ep Endpoint) (*Conn, error) {
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
	for ep, conn := range c.conns {
		if !endpoints[ep] {
			conn.close()
			delete(c.conns, ep)
		}
	}
}

// Close closes all connections.
func (c *Client) Close() { c.Retain(nil) }

// Conn is the connection to one member. Its calls may run concurrently.
type Conn struct {
	url     string
	address string
	tls     *tls.Config
	through Dial
	login   *login // nil: no user
	cli     *clientv3.Client
	// dialled counts the connections. gRPC replaces a broken one silently.
	dialled atomic.Int64
}

func (c *Conn) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := c.through(ctx, c.address)
	if err == nil {
		c.dialled.Add(1)
	}
	return conn, err
}

// Connections counts the connections to the address since the beginning. If the count is the
// same before one call and after another, the same process answered both, even if the address
// is that of a Service with many pods.
func (c *Conn) Connections() int64 { return c.dialled.Load() }

func (c *Conn) close() {
	if c.login != nil {
		c.login.know(c.cli.ActiveConnection(), false)
	}
	// The only possible error is that the connection is closed already.
	_ = c.cli.Close()
}

// Status asks the member for its state. The member answers without a quorum.
func (c *Conn) Status(ctx context.Context) (Status, error) {
	// The client's own Status would dial a connection for each call.
	resp, err := etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return Status{}, fmt.Errorf("status of %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return Status{
		MemberID:    resp.GetHeader().GetMemberId(),
		ClusterID:   resp.GetHeader().GetClusterId(),
		LeaderID:    resp.Leader,
		Version:     resp.Version,
		Learner:     resp.IsLearner,
		DBSize:      resp.DbSize,
		DBInUse:     resp.DbSizeInUse,
		DBQuota:     resp.DbSizeQuota,
		RaftTerm:    resp.RaftTerm,
		RaftIndex:   resp.RaftIndex,
		RaftApplied: applied(resp),
		Revision:    resp.GetHeader().GetRevision(),
		Alarms:      parseAlarms(resp.Errors),
	}, nil
}

// applied returns the last entry that a member has applied. Before 3.4, a member reports only
// that index.
func applied(resp *etcdserverpb.StatusResponse) uint64 {
	if v, err := ParseVersion(resp.Version); err == nil && !v.HasAppliedIndex() {
		return resp.RaftIndex
	}
	return resp.RaftAppliedIndex
}

// Members lists the membership by a linearizable read: a quorum agrees on it. Without a quorum
// it fails.
func (c *Conn) Members(ctx context.Context) ([]Member, error) {
	return c.members(ctx)
}

// LocalMembers lists the membership as this member knows it. The member answers without a
// quorum, and its list may be old.
func (c *Conn) LocalMembers(ctx context.Context) ([]Member, error) {
	return c.members(ctx, clientv3.WithSerializable())
}

func (c *Conn) members(ctx context.Context, opts ...clientv3.OpOption) ([]Member, error) {
	resp, err := c.cli.MemberList(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("member list from %s: %w", c.url, err)
	}
	return membersOf(resp.Members), nil
}

// ClusterVersion returns the version that the members have agreed on: the lowest minor among
// them. etcd raises it some seconds after the last member has reached a new minor. A member
// can be at most one minor ahead of it.
func (c *Conn) ClusterVersion(ctx context.Context) (Version, error) {
	resp, err := c.get(ctx, "/version")
	if err != nil {
		return Version{}, fmt.Errorf("cluster version from %s: %w", c.url, err)
	}
	defer resp.Body.Close()
	var versions struct {
		Cluster string `json:"etcdcluster"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4096)).Decode(&versions); err != nil {
		return Version{}, fmt.Errorf("cluster version from %s: %w", c.url, err)
	}
	return ParseVersion(versions.Cluster)
}

// get sends a request to the member's HTTP server for clients. Requests are rare: a transport for
// each holds no memory in between.
func (c *Conn) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return c.through(ctx, c.address) },
		TLSClientConfig:   c.tls,
		DisableKeepAlives: true,
	}
	return transport.RoundTrip(req)
}

// AddMember adds a member with this peer URL, as a learner or with a vote.
func (c *Conn) AddMember(ctx context.Context, peerURL string, learner bool) (Member, error) {
	add := c.cli.MemberAdd
	if learner {
		add = c.cli.MemberAddAsLearner
	}
	resp, err := add(ctx, []string{peerURL})
	if err != nil {
		return Member{}, fmt.Errorf("member add %s through %s: %w", peerURL, c.url, err)
	}
	return memberOf(resp.Member), nil
}

// PromoteMember gives a learner its vote. While the learner is not in sync, IsNotYet is true
// of the error.
func (c *Conn) PromoteMember(ctx context.Context, id uint64) error {
	if _, err := c.cli.MemberPromote(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrMemberNotLearner) {
		return fmt.Errorf("member promote %s through %s: %w", FormatID(id), c.url, err)
	}
	return nil
}

// RemoveMember removes a member. It returns no error for one that is not a member.
func (c *Conn) RemoveMember(ctx context.Context, id uint64) error {
	if _, err := c.cli.MemberRemove(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return fmt.Errorf("member remove %s through %s: %w", FormatID(id), c.url, err)
	}
	return nil
}

// MoveLeader transfers leadership to a voter. The Conn must be to the leader.
func (c *Conn) MoveLeader(ctx context.Context, to uint64) error {
	if _, err := c.cli.MoveLeader(ctx, to); err != nil {
		return fmt.Errorf("move leader from %s to %s: %w", c.url, FormatID(to), err)
	}
	return nil
}

// AdvanceLog appends n entries to the raft log. They disarm no alarm of no member, and so
// change nothing.
func (c *Conn) AdvanceLog(ctx context.Context, n int) error {
	maintenance := etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection())
	nothing := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, Alarm: etcdserverpb.AlarmType_NONE}
	appending, ctx := errgroup.WithContext(ctx)
	appending.SetLimit(64) // etcd writes concurrent requests in one batch
	for range n {
		appending.Go(func() error {
			_, err := maintenance.Alarm(ctx, nothing)
			return err
		})
	}
	if err := appending.Wait(); err != nil {
		return fmt.Errorf("append entries to the log through %s: %w", c.url, clientv3.ContextError(ctx, err))
	}
	return nil
}

// Disarm disarms one alarm of one member, even of a removed one. etcd then accepts all
// requests until a member raises an alarm again, even if other alarms remain.
func (c *Conn) Disarm(ctx context.Context, a Alarm) error {
	kind, err := a.kind()
	if err != nil {
		return fmt.Errorf("disarm %w", err)
	}
	_, err = etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID, Alarm: kind,
	})
	if err != nil {
		return fmt.Errorf("disarm the alarm %s of member %s through %s: %w", a.Type, FormatID(a.MemberID), c.url, clientv3.ContextError(ctx, err))
	}
	return nil
}

// notYet are etcd's refusals that pass with time: a learner is behind, a member joined less
// than five seconds ago (etcd's HealthInterval under --strict-reconfig-check), or an election
// runs.
var notYet = []error{
	rpctypes.ErrMemberLearnerNotReady,
	rpctypes.ErrMemberNotEnoughStarted,
	rpctypes.ErrTooManyLearners,
	rpctypes.ErrUnhealthy,
	rpctypes.ErrNoLeader,
	rpctypes.ErrNotLeader,
	rpctypes.ErrLeaderChanged,
	rpctypes.ErrTimeout,
	rpctypes.ErrTimeoutDueToLeaderFail,
	rpctypes.ErrTimeoutDueToConnectionLost,
	rpctypes.ErrNotCapable,
}

// IsNotYet reports whether a refused change is worth a retry a moment later, without any
// fault.
func IsNotYet(err error) bool {
	for _, e := range notYet {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func membersOf(list []*etcdserverpb.Member) []Member {
	members := make([]Member, 0, len(list))
	for _, m := range list {
		members = append(members, memberOf(m))
	}
	SortMembers(members)
	return members
}

func memberOf(m *etcdserverpb.Member) Member {
	return Member{ID: m.GetID(), Name: m.GetName(), PeerURLs: m.GetPeerURLs(), Learner: m.GetIsLearner()}
}
