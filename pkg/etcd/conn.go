// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

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
