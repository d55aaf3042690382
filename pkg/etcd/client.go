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
	// URL names the member; certificates are checked against its host.
	URL string
	// IP is what is dialled. Names of members that have just started, or while
	// the cluster's DNS is down, don't resolve; their addresses are known. Empty:
	// the URL's host is resolved and dialled.
	IP string
}

// Status is what one member says of itself.
type Status struct {
	MemberID  uint64
	ClusterID uint64
	// LeaderID is 0 where the member knows no leader.
	LeaderID uint64
	Version  string
	Learner  bool
	DBSize   int64
	DBInUse  int64
	// DBQuota is the size at which the member takes no more writes. 0: not known; etcd
	// tells it since 3.6.
	DBQuota   int64
	RaftIndex uint64
	// RaftApplied is the last entry that the member has applied.
	RaftApplied uint64
	// Revision of the data that the member holds.
	Revision int64
	// Alarms are those of all members, as this one has heard of them.
	Alarms []Alarm
}

// streamWindow is enough for 1 GB/s at a round trip of a millisecond.
const streamWindow = 1 << 20

// Client asks and changes the members of one cluster. It keeps one connection a
// member, because membership and health are questions to one member each. It is
// not safe for concurrent use but for the calls of a Conn.
type Client struct {
	tls   *tls.Config
	dial  Dial
	conns map[Endpoint]*Conn
}

// Dial connects to an address, which is a host and a port.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// NewClient returns a client without connections; tlsConfig is nil for plain text.
func NewClient(tlsConfig *tls.Config) *Client {
	return NewClientThrough(tlsConfig, func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
}

// NewClientThrough returns a client whose connections are made by dial. Its addresses
// are those that the endpoints name as IP, with the port of the URL.
func NewClientThrough(tlsConfig *tls.Config, dial Dial) *Client {
	return &Client{tls: tlsConfig, dial: dial, conns: map[Endpoint]*Conn{}}
}

// SetTLS makes all connections anew with another configuration. Those that are
// open would go on with the certificates of old until they break, and then break
// at another time than that of the change.
func (c *Client) SetTLS(tlsConfig *tls.Config) {
	c.Close()
	c.tls = tlsConfig
}

// Conn returns the connection to a member, which is dialled in the background.
func (c *Client) Conn(ep Endpoint) (*Conn, error) {
	if conn := c.conns[ep]; conn != nil {
		return conn, nil
	}
	u, err := url.Parse(ep.URL)
	if err != nil {
		return nil, fmt.Errorf("client URL of a member: %w", err)
	}
	address := net.JoinHostPort(cmp.Or(ep.IP, u.Hostname()), u.Port())
	conn := &Conn{url: ep.URL, address: address, tls: c.tls, through: c.dial}
	cli, err := clientv3.New(clientv3.Config{
		Endpoints: []string{ep.URL},
		TLS:       c.tls,
		Logger:    zap.NewNop(), // errors come back from the calls
		// A node that vanishes leaves connections that never end by themselves.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// By default the client asks a server that is down a hundred times. Here
		// each pass asks anew, and wants to know now.
		MaxUnaryRetries: 1,
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(conn.dial),
			// What a member may send ahead of who reads it. By default it grows up to
			// 16 MiB, all of which a snapshot fills when its store is slower.
			grpc.WithInitialWindowSize(streamWindow),
			grpc.WithInitialConnWindowSize(streamWindow),
			// gRPC's default of up to two minutes between attempts is made for
			// servers far away; here a member restarts and is to be seen at once.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: 2 * time.Second,
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", ep.URL, err)
	}
	conn.cli = cli
	conn.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dial(ctx, address)
		},
		TLSClientConfig:   c.tls,
		DisableKeepAlives: true, // it is asked seldom
	}}
	c.conns[ep] = conn
	return conn, nil
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
	cli     *clientv3.Client
	http    *http.Client
	// dialled counts the connections that were made; gRPC makes another where one
	// breaks, and does not tell.
	dialled atomic.Int64
}

func (c *Conn) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := c.through(ctx, c.address)
	if err == nil {
		c.dialled.Add(1)
	}
	return conn, err
}

// Connections counts the connections that were made to the address since the
// beginning. Where it has not changed from before one call until after another,
// both were answered by the same process, also if the address is that of a
// Service with many behind it.
func (c *Conn) Connections() int64 { return c.dialled.Load() }

func (c *Conn) close() {
	// The only error is that of a connection that is closed already.
	_ = c.cli.Close()
}

// Status asks the member for its state; it answers without a quorum.
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
		RaftIndex:   resp.RaftIndex,
		RaftApplied: applied(resp),
		Revision:    resp.GetHeader().GetRevision(),
		Alarms:      parseAlarms(resp.Errors),
	}, nil
}

// applied is the last entry that a member has applied. Before 3.4 a member reports one
// index, which is that of the last entry that it has applied.
func applied(resp *etcdserverpb.StatusResponse) uint64 {
	if v, err := ParseVersion(resp.Version); err == nil && !v.HasAppliedIndex() {
		return resp.RaftIndex
	}
	return resp.RaftAppliedIndex
}

// Members lists the membership by a linearizable read: it is what a quorum has
// agreed on, and fails without one.
func (c *Conn) Members(ctx context.Context) ([]Member, error) {
	return c.members(ctx)
}

// LocalMembers lists the membership as this member last heard of it. It answers
// without a quorum, and may be old.
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

// ClusterVersion asks for the version that the members have agreed on: the lowest
// minor among them, which etcd raises some seconds after the last member has
// reached it. A member can be at most one minor ahead of it.
func (c *Conn) ClusterVersion(ctx context.Context) (Version, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/version", nil)
	if err != nil {
		return Version{}, fmt.Errorf("cluster version from %s: %w", c.url, err)
	}
	resp, err := c.http.Do(req)
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

// PromoteMember gives a learner its vote. While the learner is not in sync the
// error IsNotYet.
func (c *Conn) PromoteMember(ctx context.Context, id uint64) error {
	if _, err := c.cli.MemberPromote(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrMemberNotLearner) {
		return fmt.Errorf("member promote %s through %s: %w", FormatID(id), c.url, err)
	}
	return nil
}

// RemoveMember removes a member; one that is no member already is no error.
func (c *Conn) RemoveMember(ctx context.Context, id uint64) error {
	if _, err := c.cli.MemberRemove(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return fmt.Errorf("member remove %s through %s: %w", FormatID(id), c.url, err)
	}
	return nil
}

// MoveLeader hands leadership to a voter. It must be asked of the leader.
func (c *Conn) MoveLeader(ctx context.Context, to uint64) error {
	if _, err := c.cli.MoveLeader(ctx, to); err != nil {
		return fmt.Errorf("move leader from %s to %s: %w", c.url, FormatID(to), err)
	}
	return nil
}

// AdvanceLog appends n entries to the raft log that change nothing: they lift
// alarms of no kind from no member.
func (c *Conn) AdvanceLog(ctx context.Context, n int) error {
	maintenance := etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection())
	nothing := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, Alarm: etcdserverpb.AlarmType_NONE}
	appending, ctx := errgroup.WithContext(ctx)
	appending.SetLimit(64) // etcd writes what is under way together in one go
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

// Disarm lifts one alarm of one member, who may be none by now. etcd takes all requests
// again then, also where other alarms stand, until they are raised anew.
func (c *Conn) Disarm(ctx context.Context, a Alarm) error {
	kind, known := etcdserverpb.AlarmType_value[a.Type]
	if !known || kind == int32(etcdserverpb.AlarmType_NONE) {
		return fmt.Errorf("lift the alarm %q of member %s: no alarm of that name is known", a.Type, FormatID(a.MemberID))
	}
	_, err := etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID, Alarm: etcdserverpb.AlarmType(kind),
	})
	if err != nil {
		return fmt.Errorf("lift the alarm %s of member %s through %s: %w", a.Type, FormatID(a.MemberID), c.url, clientv3.ContextError(ctx, err))
	}
	return nil
}

// notYet are etcd's refusals that time heals: a learner that is behind, a member
// that joined less than five seconds ago (etcd's HealthInterval under
// --strict-reconfig-check), an election that is going on.
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

// IsNotYet tells whether a refused change is worth the same question a moment
// later without anything being wrong.
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
