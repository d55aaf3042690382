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

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// proof shows that a member holds the data of an imported etcd, and that all former members are
// connected to it.
//
// The proof is that both have the same keys and values at one revision (etcd.Digest). HashKV would
// make all clients of the member wait that answers it.
type proof struct {
	member plan.MemberState
	own    Member
	peer   string            // URL of the member
	former map[string]Member // by name; nil for one that has not answered
	leader string            // of the former members, if one of them leads
	known  digestAt          // of the former members, from an earlier proof
}

// digestAt is what the members of an imported etcd hold at a revision.
type digestAt struct {
	revision int64
	digest   etcd.Digest
	at       time.Time
}

// digestReuse is how long a digest of the former members serves for other proofs: each one costs
// them a read of their whole database.
const digestReuse = 10 * time.Minute

// run returns what the operator waits for, and the least time until the next attempt; "" if the
// proof is complete.
func (p *proof) run(ctx context.Context) (doubt string, pause time.Duration) {
	name := p.member.PodName
	var through Member
	for _, former := range slices.Sorted(maps.Keys(p.former)) {
		conn := p.former[former]
		if conn == nil {
			return fmt.Sprintf("for an answer of the former member %s, to compare it with %s", former, name), proofPause
		}
		connected, err := p.connected(ctx, conn)
		switch {
		case err != nil:
			return fmt.Sprintf("to see in the metrics of the former member %s whether it is connected to %s: %s", former, name, notice.Shorten(err.Error(), 300)), proofRest
		case !connected:
			return fmt.Sprintf("for the former member %s to connect to %s at %s; if the network allows that, delete the pod of %s, so that both connect again", former, name, p.peer, name), proofPause
		}
		// A leader has the most to do.
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
		return fmt.Sprintf("because %s holds other data than the former members: delete its volume, and then its pod, so that another member joins", name), proofRest
	}
	return "", 0
}

// compare reports whether the member holds the same as a former one. If a former one was read a
// short time ago, its revision of that time is compared.
func (p *proof) compare(ctx context.Context, former Member) (bool, error) {
	if p.known.revision > 0 && p.known.revision <= p.member.Status.Revision {
		ours, err := p.own.Digest(ctx, p.known.revision)
		switch {
		case err != nil && !errors.Is(err, rpctypes.ErrCompacted):
			return false, err // no read of a former member would change that
		case err == nil && ours == p.known.digest:
			return true, nil
		}
	}
	// A compaction may have removed what the earlier revision had.
	revision := p.member.Status.Revision
	theirs, err := former.Digest(ctx, revision)
	if err != nil {
		return false, err
	}
	p.known.revision, p.known.digest = revision, theirs
	ours, err := p.own.Digest(ctx, revision)
	return ours == theirs, err
}

func (p *proof) connected(ctx context.Context, former Member) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, proofRest)
	defer cancel()
	return former.ConnectedTo(ctx, p.member.ID)
}
