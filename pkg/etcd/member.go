// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Member is one entry of a cluster's membership.
type Member struct {
	// ID is assigned by the cluster when somebody adds the member. It never changes.
	ID uint64
	// Name is the member's own name. It is empty until the member has started once.
	Name string
	// PeerURLs are the URLs for the other members, in etcd's order.
	PeerURLs []string
	// Learner means a member without a vote.
	Learner bool
}

// Host returns the host of the member's first peer URL, without the port, or "" if there is
// none. Somebody may have added the member by hand, so the URL may have any form.
func (m Member) Host() string {
	if len(m.PeerURLs) == 0 {
		return ""
	}
	u, err := url.Parse(m.PeerURLs[0])
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// String names the member for people: its name or else its host, and its ID.
func (m Member) String() string {
	name := m.Name
	if name == "" {
		name = m.Host()
	}
	return fmt.Sprintf("%s (%s)", name, FormatID(m.ID))
}

// FormatID formats a member or cluster ID as etcdctl does.
func FormatID(id uint64) string { return fmt.Sprintf("%x", id) }

// SortMembers sorts by ID, so that every decision over members is repeatable.
func SortMembers(members []Member) {
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
}

// Quorum is the number of voters that must agree.
func Quorum(voters int) int { return voters/2 + 1 }

// InitialCluster is the value of --initial-cluster: names by peer URL. etcd compares a joining
// member's set of URLs with the running cluster's, and exits if they differ.
type InitialCluster map[string]string

// ParseInitialCluster reads name=url,name=url. It skips what does not parse: the caller
// compares the result with the expected one.
func ParseInitialCluster(s string) InitialCluster {
	ic := InitialCluster{}
	for pair := range strings.SplitSeq(s, ",") {
		if name, peerURL, ok := strings.Cut(pair, "="); ok {
			ic[peerURL] = name
		}
	}
	return ic
}

// String returns the flag's value, sorted by name.
func (ic InitialCluster) String() string {
	pairs := make([]string, 0, len(ic))
	for peerURL, name := range ic {
		pairs = append(pairs, name+"="+peerURL)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
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
