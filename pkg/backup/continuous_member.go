// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// OpenMember connects to a member that has a quorum. It must be closed.
type OpenMember func(ctx context.Context, source snapshot.Source) (recorder.Member, etcd.Position, func(), error)

// memberLimit is how long one member may take to answer.
const memberLimit = 5 * time.Second

// openMember connects to the first member of a real etcd that answers.
func openMember(ctx context.Context, source snapshot.Source) (recorder.Member, etcd.Position, func(), error) {
	client := etcd.NewClient(source.TLS)
	client.SetCredentials(source.User)
	var failures []error
	for _, ep := range source.Endpoints {
		conn, err := client.Conn(ep)
		if err == nil {
			member := recorder.Of(conn)
			var at etcd.Position
			if at, err = position(ctx, member); err == nil {
				client.Retain(map[etcd.Endpoint]bool{ep: true})
				return member, at, client.Close, nil
			}
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	client.Close()
	return nil, etcd.Position{}, nil, errors.Join(failures...)
}

func position(ctx context.Context, member recorder.Member) (etcd.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, memberLimit)
	defer cancel()
	return member.Position(ctx)
}

// HashAt asks a member of a cluster for the hash of its keys at a revision. watched is the ID of
// the member through which the log is recorded.
type HashAt func(ctx context.Context, source snapshot.Source, cluster, watched uint64, revision int64) (changelog.Checkpoint, error)

// largestPause is the largest database, in bytes in use, for whose hash a leader is asked. It takes
// about a second to read, and all clients wait.
const largestPause = 512 << 20

// hashLimit bounds a question for the hash: a member reads all its data for it.
const hashLimit = 5 * time.Minute

// hashAt asks a real etcd.
func hashAt(ctx context.Context, source snapshot.Source, cluster, watched uint64, revision int64) (changelog.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, hashLimit)
	defer cancel()
	client := etcd.NewClient(source.TLS)
	client.SetCredentials(source.User)
	defer client.Close()
	var asked []answering
	var failures []error
	for _, ep := range source.Endpoints {
		conn, err := client.Conn(ep)
		if err == nil {
			limited, stop := context.WithTimeout(ctx, memberLimit)
			var st etcd.Status
			st, err = conn.Status(limited)
			stop()
			asked = append(asked, answering{conn, st})
		}
		failures = append(failures, err)
	}
	m, found := quietest(asked, cluster, watched, revision)
	if !found {
		return changelog.Checkpoint{}, errors.Join(append(failures, fmt.Errorf("no member of the cluster %016x that answers has revision %d, and follows or has a small database", cluster, revision))...)
	}
	hash, err := m.conn.HashAt(ctx, revision)
	if err != nil {
		return changelog.Checkpoint{}, err
	}
	return changelog.Checkpoint{Revision: revision, Compacted: max(hash.Compacted, 0), Hash: hash.Sum}, nil
}

// answering is a member and its answer; the zero Status: it has not answered.
type answering struct {
	conn   *etcd.Conn
	status etcd.Status
}

// quietest chooses the member that delays others least while it applies nothing: one that
// neither leads nor sends the changes to the log, if there is one.
func quietest(members []answering, cluster, watched uint64, revision int64) (m answering, found bool) {
	members = slices.DeleteFunc(slices.Clone(members), func(m answering) bool {
		st := m.status
		pauses := st.MemberID == st.LeaderID && cmp.Or(st.DBInUse, st.DBSize) > largestPause
		return st.ClusterID != cluster || st.Learner || st.Revision < revision || pauses
	})
	if len(members) == 0 {
		return answering{}, false
	}
	cost := func(m answering) int {
		switch m.status.MemberID {
		case m.status.LeaderID:
			return 2 // all clients wait for it
		case watched:
			return 1
		}
		return 0
	}
	return slices.MinFunc(members, func(a, b answering) int { return cmp.Compare(cost(a), cost(b)) }), true
}
