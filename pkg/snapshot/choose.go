// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// ErrNoMember is wrapped if no endpoint leads to a member that can give a backup. The error
// names the reason for each endpoint.
var ErrNoMember = errors.New("no member to take a backup from")

// answer is what an endpoint has answered.
type answer struct {
	url string

	status    etcd.Status
	statusErr error

	// agreed is the revision of a linearizable read through the endpoint. Without a quorum
	// there is none.
	agreed    int64
	agreedErr error
}

// revision is the revision that the member certainly holds.
func (a answer) revision() int64 { return max(a.status.Revision, a.agreed) }

func (a answer) leads() bool { return a.status.MemberID != 0 && a.status.LeaderID == a.status.MemberID }

// choice is the members to take the snapshot from.
type choice struct {
	// ranked are the indexes of the usable members' answers, the best first.
	ranked []int
	// linearizable means that these members hold every write that was acknowledged before the
	// requests. Otherwise there is no quorum, and the members are ranked by their revisions.
	linearizable bool
}

// choose ranks the members to take the snapshot from.
func choose(answers []answer) (choice, error) {
	if err := sameCluster(answers); err != nil {
		return choice{}, err
	}
	agreed, linearizable := lowestAgreed(answers)
	corrupt := corruptMembers(answers)
	c := choice{linearizable: linearizable}
	var reasons failures
	for i, a := range answers {
		if err := unfit(a, agreed, linearizable, corrupt); err != nil {
			reasons = append(reasons, failure{a.url, err})
		} else {
			c.ranked = append(c.ranked, i)
		}
	}
	if len(c.ranked) == 0 {
		return choice{}, fmt.Errorf("%w: %w", ErrNoMember, reasons)
	}
	slices.SortStableFunc(c.ranked, func(i, j int) int {
		a, b := answers[i], answers[j]
		newer := cmp.Compare(b.revision(), a.revision())
		if linearizable {
			return cmp.Or(compareBool(a.leads(), b.leads()), newer)
		}
		// Leases, users and roles raise no revision. A server of data also gives the entries after the last
		// applied one, and reports the last of them.
		return cmp.Or(newer, cmp.Compare(b.status.RaftApplied, a.status.RaftApplied), cmp.Compare(b.status.RaftIndex, a.status.RaftIndex), compareBool(a.leads(), b.leads()))
	})
	return c, nil
}

// Reasons why a member that answers can't give a backup.
var (
	errLearner = errors.New("the member is a learner, of which etcd makes no snapshots: name a voting member")
	errCorrupt = errors.New("the alarm CORRUPT was raised for the member: its data differs from the others'")
	errAlone   = errors.New("the member has lost the cluster's leader")
	errBehind  = errors.New("the member is behind")
)

// unfit returns why a member can't give a backup, or nil.
func unfit(a answer, agreed int64, linearizable bool, corrupt map[uint64]bool) error {
	switch {
	case a.statusErr != nil:
		return a.statusErr
	case a.status.Learner:
		return errLearner
	case corrupt[a.status.MemberID] || corrupt[0]:
		return errCorrupt
	case linearizable && a.status.LeaderID == 0:
		return errAlone
	case linearizable && a.revision() < agreed:
		return fmt.Errorf("%w: it holds revision %d, the cluster has reached %d", errBehind, a.revision(), agreed)
	default:
		return nil
	}
}

// lowestAgreed returns a revision that contains all writes acknowledged before the requests.
// Each linearizable read returns such a revision. The lowest one excludes the fewest members.
func lowestAgreed(answers []answer) (revision int64, ok bool) {
	for _, a := range answers {
		if a.agreedErr == nil && (!ok || a.agreed < revision) {
			revision, ok = a.agreed, true
		}
	}
	return revision, ok
}

// corruptMembers returns the members with an alarm that any member knows of. The key 0 is for
// an alarm without a known member: then no member is safe.
func corruptMembers(answers []answer) map[uint64]bool {
	corrupt := map[uint64]bool{}
	for _, a := range answers {
		for _, alarm := range a.status.Alarms {
			if alarm.Type == etcd.AlarmCorrupt {
				corrupt[alarm.MemberID] = true
			}
		}
	}
	return corrupt
}

func sameCluster(answers []answer) error {
	first := -1
	for i, a := range answers {
		if a.statusErr != nil {
			continue
		}
		if first < 0 {
			first = i
		}
		if a.status.ClusterID != answers[first].status.ClusterID {
			return fmt.Errorf("%w: %s and %s are endpoints of different clusters: name those of one",
				ErrNoMember, answers[first].url, a.url)
		}
	}
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
