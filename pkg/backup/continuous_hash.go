// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// HashAt compares what members of a cluster have at a revision. watched is the ID of the member
// through which the log is recorded.
type HashAt func(ctx context.Context, source snapshot.Source, cluster, watched uint64, revision int64) (comparison, error)

// comparison is the result of asking members for the hash of their keys at one revision.
type comparison struct {
	// agreed is the hash that two members have, or the only member.
	agreed changelog.Checkpoint
	// differing says which members have other keys than others; "": none was seen.
	differing string
}

const (
	// largestPause is the largest database, in bytes in use, for whose hash a leader is asked. It
	// takes about a second to read, and all clients wait.
	largestPause = 512 << 20
	// hashLimit bounds a question for the hash: a member reads all its data for it.
	hashLimit = 5 * time.Minute
	// secondLook is the time from a difference to the question that confirms it. Until each member
	// has deleted what a compaction leaves to delete, some versions of etcd give different hashes of
	// the same keys (etcd pull request 18274).
	secondLook = time.Minute
)

// hashesOf asks a real etcd. It confirms a difference after a pause.
func hashesOf(pause time.Duration) HashAt {
	return func(ctx context.Context, source snapshot.Source, cluster, watched uint64, revision int64) (comparison, error) {
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
				asked = append(asked, answering{conn, ep.URL, st})
			}
			failures = append(failures, err)
		}
		members := byDelay(asked, cluster, watched, revision)
		enough := min(2, len(source.Endpoints))
		if len(members) < enough {
			return comparison{}, errors.Join(append(failures, fmt.Errorf("of the cluster %016x, %d members answer, have revision %d, and follow or have a small database: the hash of %d is needed", cluster, len(members), revision, enough))...)
		}
		return compareTwice(ctx, pause, members, enough, func(m answering) (changelog.Checkpoint, error) {
			limited, cancel := context.WithTimeout(ctx, hashLimit)
			defer cancel()
			hash, err := m.conn.HashAt(limited, revision)
			return changelog.Checkpoint{Revision: revision, Compacted: max(hash.Compacted, 0), Hash: hash.Sum}, err
		})
	}
}

// answering is a member and its answer; the zero Status: it has not answered.
type answering struct {
	conn   *etcd.Conn
	name   string // for people
	status etcd.Status
}

// byDelay returns the members to ask: those first that delay others least while they apply nothing.
// Versions of etcd may differ in what they sum up, so all members are of one version.
func byDelay(members []answering, cluster, watched uint64, revision int64) []answering {
	members = slices.DeleteFunc(slices.Clone(members), func(m answering) bool {
		st := m.status
		pauses := st.MemberID == st.LeaderID && cmp.Or(st.DBInUse, st.DBSize) > largestPause
		return st.ClusterID != cluster || st.Learner || st.Revision < revision || pauses
	})
	cost := func(m answering) int {
		switch m.status.MemberID {
		case m.status.LeaderID:
			return 2 // all clients wait for it
		case watched:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(members, func(a, b answering) int { return cmp.Compare(cost(a), cost(b)) })
	return slices.DeleteFunc(members, func(m answering) bool { return m.status.Version != members[0].status.Version })
}

// compareTwice compares members, and repeats it before it reports a difference.
func compareTwice(ctx context.Context, pause time.Duration, members []answering, enough int, ask func(answering) (changelog.Checkpoint, error)) (comparison, error) {
	got, err := compareHashes(members, enough, ask)
	if got.differing == "" {
		return got, err
	}
	after := time.NewTimer(pause)
	defer after.Stop()
	select {
	case <-ctx.Done():
		return comparison{}, ctx.Err()
	case <-after.C:
	}
	return compareHashes(members, enough, ask)
}

// compareHashes asks members one after the other until enough have the same hash. Hashes after
// different compactions cannot be compared.
func compareHashes(members []answering, enough int, ask func(answering) (changelog.Checkpoint, error)) (comparison, error) {
	type group struct {
		hash    changelog.Checkpoint
		members []string
	}
	var groups []group
	var failures []error
	var got comparison
	for _, m := range members {
		hash, err := ask(m)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.hash == hash })
		if i < 0 {
			i, groups = len(groups), append(groups, group{hash: hash})
		}
		groups[i].members = append(groups[i].members, m.name)
		if len(groups[i].members) == enough {
			got.agreed = hash
			break
		}
	}
	var parts []string
	for _, g := range groups {
		if slices.ContainsFunc(groups, func(other group) bool { return other.hash.Compacted == g.hash.Compacted && other.hash != g.hash }) {
			parts = append(parts, fmt.Sprintf("%s: %08x", strings.Join(g.members, " and "), g.hash.Hash))
		}
	}
	if len(parts) > 0 {
		got.differing = fmt.Sprintf("members have different keys at revision %d, as their hashes show (%s)", groups[0].hash.Revision, strings.Join(parts, "; "))
	}
	switch {
	case got.agreed.Revision > 0:
		return got, nil
	case got.differing != "":
		return got, errors.New(got.differing)
	}
	return got, errors.Join(append(failures, fmt.Errorf("no %d members have given a hash after the same compaction", enough))...)
}
