// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Members reaches the members of one cluster. Conn, and the calls of a Member, are safe for concurrent
// use. All else is for the goroutine of the cluster.
type Members interface {
	// Conn returns the connection to one member without waiting for it.
	Conn(ep etcd.Endpoint) (Member, error)
	// Retain closes the connections to all other endpoints.
	Retain(endpoints map[etcd.Endpoint]bool)
	// SetTLS sets another configuration.
	SetTLS(config *tls.Config)
	// SetCredentials sets the user that logs in.
	SetCredentials(user etcd.Credentials)
	// CopiesDatabase reports whether the member with this metrics listener is receiving a
	// copy of the database, or defragments its own.
	CopiesDatabase(ctx context.Context, address string) (bool, error)
	// NotServing returns what the member with this metrics listener states there, if it runs and has no
	// leader. It is for one that serves no clients.
	NotServing(ctx context.Context, address string) (etcd.Status, error)
	// ShareLogin makes it log in as another one does, with the same tokens.
	ShareLogin(with Members)
	// Close closes all connections.
	Close()
}

// Member queries one member, and changes the cluster through it. *etcd.Conn documents the
// calls.
type Member interface {
	Status(ctx context.Context) (etcd.Status, error)
	Commits(ctx context.Context) (etcd.Position, error)
	Members(ctx context.Context) ([]etcd.Member, error)
	LocalMembers(ctx context.Context) ([]etcd.Member, error)
	ClusterVersion(ctx context.Context) (etcd.Version, error)
	AddMember(ctx context.Context, peerURL string, learner bool) (etcd.Member, error)
	PromoteMember(ctx context.Context, id uint64) error
	RemoveMember(ctx context.Context, id uint64) error
	MoveLeader(ctx context.Context, to uint64) error
	Digest(ctx context.Context, revision int64) (etcd.Digest, error)
	ConnectedTo(ctx context.Context, id uint64) (bool, error)
	AdvanceLog(ctx context.Context, n int) error
	Disarm(ctx context.Context, a etcd.Alarm) error
	Raise(ctx context.Context, a etcd.Alarm) error
	RefusesWrites(ctx context.Context) (bool, error)
	AuthEnabled(ctx context.Context) (bool, error)
	EnableAuth(ctx context.Context, password string) error
	DisableAuth(ctx context.Context) error
	ChangePassword(ctx context.Context, user etcd.Credentials) error
}

// overNetwork reaches the members by etcd's own client.
type overNetwork struct{ *etcd.Client }

// MembersOverNetwork reaches members through the network, in plain text before SetTLS.
func MembersOverNetwork() Members { return overNetwork{etcd.NewClient(nil).Small()} }

func (n overNetwork) Conn(ep etcd.Endpoint) (Member, error) {
	conn, err := n.Client.Conn(ep)
	if err != nil {
		return nil, err // not a nil *etcd.Conn, which is a Member
	}
	return conn, nil
}

func (overNetwork) CopiesDatabase(ctx context.Context, address string) (bool, error) {
	return etcd.CopiesDatabase(ctx, address)
}

func (overNetwork) NotServing(ctx context.Context, address string) (etcd.Status, error) {
	return etcd.NotServing(ctx, address)
}

func (n overNetwork) ShareLogin(with Members) {
	if other, ok := with.(overNetwork); ok {
		n.Client.ShareLogin(other.Client)
	}
}
