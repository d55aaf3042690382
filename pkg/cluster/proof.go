// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// errCompacted means that hashes can't be compared.
var errCompacted = errors.New("a compaction ran meanwhile; the operator compares again")

// proof shows that a member holds the data of an imported etcd, and that all former members are
// connected to it.
//
// HashKV proves most, because it reads the values too. A voter answers it to clients, and a learner
// to peers alone. With TLS, peers turn away all callers but members. There, a learner shows its keys
// and their revisions, and HashKV follows once it votes, before the commit.
type proof struct {
	member        plan.MemberState
	own           Member
	voter, secure bool
	peer          etcd.Endpoint
	former        map[string]Member // by name; nil for one that has not answered
	leader        string            // of the former members, if one of them leads
	peerHash      func(ctx context.Context, peer etcd.Endpoint, revision int64) (etcd.Hash, error)
}

// run returns what the operator waits for, and the least time until the next attempt; "" if the
// proof is complete.
func (p proof) run(ctx context.Context) (doubt string, pause time.Duration) {
	name := p.member.PodName
	var through Member
	for _, former := range slices.Sorted(maps.Keys(p.former)) {
		conn := p.former[former]
		if conn == nil {
			return fmt.Sprintf("for an answer of the former member %s, to compare it with %s", former, name), proofPause
		}
		connected, err := conn.ConnectedTo(ctx, p.member.ID)
		switch {
		case err != nil:
			return fmt.Sprintf("to see in the metrics of the former member %s whether it is connected to %s: %s", former, name, notice.Shorten(err.Error(), 300)), proofRest
		case !connected:
			return fmt.Sprintf("for the former member %s to connect to %s at %s; if the network allows that, delete the pod of %s, so that both connect again", former, name, p.peer.URL, name), proofPause
		}
		// A member applies no writes while it reads its database, and all clients wait for a leader.
		if through == nil || former != p.leader {
			through = conn
		}
	}
	if through == nil || p.own == nil {
		return "for answers of a former member and of " + name + ", to compare them", proofPause
	}
	equal, err := p.compare(ctx, through)
	switch {
	case err != nil:
		return fmt.Sprintf("to compare the data of %s: %s", name, notice.Shorten(err.Error(), 300)), proofRest
	case !equal:
		return fmt.Sprintf("because %s holds other data than the former members: delete its pod and its volume, so that another member joins", name), proofRest
	}
	return "", 0
}

// compare reports whether the member holds the same as a former one at the member's revision.
func (p proof) compare(ctx context.Context, former Member) (bool, error) {
	revision := p.member.Status.Revision
	if !p.voter && p.secure {
		theirs, err := former.Keys(ctx, revision)
		if err != nil {
			return false, err
		}
		ours, err := p.own.Keys(ctx, revision)
		return ours == theirs, err
	}
	theirs, err := former.HashKV(ctx, revision)
	if err != nil {
		return false, err
	}
	var ours etcd.Hash
	if p.voter {
		ours, err = p.own.HashKV(ctx, revision)
	} else {
		ours, err = p.peerHash(ctx, p.peer, revision)
	}
	if err == nil && ours.Compacted != theirs.Compacted {
		err = errCompacted
	}
	return ours == theirs, err
}
