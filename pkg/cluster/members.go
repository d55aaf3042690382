// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Members reaches the members of one cluster. It is not safe for concurrent use but
// for the calls of a Member.
type Members interface {
	// Conn returns the way to one member and does not wait for its answer.
	Conn(ep etcd.Endpoint) (Member, error)
	// Retain gives up the ways to all other endpoints.
	Retain(endpoints map[etcd.Endpoint]bool)
	// SetTLS goes on with another configuration.
	SetTLS(config *tls.Config)
	// ReceivesSnapshot reports whether the member whose metrics listener is at an
	// address receives a copy of the database at this moment.
	ReceivesSnapshot(ctx context.Context, address string) (bool, error)
	// Close gives up the ways to all members.
	Close()
}

// Member asks one member, and changes the cluster through it. *etcd.Conn says what
// each call does.
type Member interface {
	Status(ctx context.Context) (etcd.Status, error)
	Commits(ctx context.Context) error
	Members(ctx context.Context) ([]etcd.Member, error)
	LocalMembers(ctx context.Context) ([]etcd.Member, error)
	ClusterVersion(ctx context.Context) (etcd.Version, error)
	AddMember(ctx context.Context, peerURL string, learner bool) (etcd.Member, error)
	PromoteMember(ctx context.Context, id uint64) error
	RemoveMember(ctx context.Context, id uint64) error
	MoveLeader(ctx context.Context, to uint64) error
	AdvanceLog(ctx context.Context, n int) error
	Disarm(ctx context.Context, a etcd.Alarm) error
}

// overNetwork are the members as etcd's own client reaches them.
type overNetwork struct{ *etcd.Client }

// MembersOverNetwork reaches members through the network, in plain text until SetTLS.
func MembersOverNetwork() Members { return overNetwork{etcd.NewClient(nil)} }

func (n overNetwork) Conn(ep etcd.Endpoint) (Member, error) {
	conn, err := n.Client.Conn(ep)
	if err != nil {
		return nil, err // not a nil *etcd.Conn, which is a Member
	}
	return conn, nil
}

func (overNetwork) ReceivesSnapshot(ctx context.Context, address string) (bool, error) {
	return etcd.ReceivesSnapshot(ctx, address)
}
