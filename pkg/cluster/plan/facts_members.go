// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// dbSize is that of the largest database that a member tells of.
func (o *Observation) dbSize() int64 {
	var size int64
	for _, m := range o.Members {
		if m.Status != nil {
			size = max(size, m.Status.DBSize)
		}
	}
	return size
}

// memberNodes is on how many nodes the members are.
func (o *Observation) memberNodes() int {
	nodes := map[string]bool{}
	for _, m := range o.Own() {
		if m.Pod != nil {
			nodes[m.Pod.Node] = true
		}
	}
	return len(nodes)
}

// electionPatience is how long a cluster may be without a leader that was available
// before, until it counts as one that isn't. Members vote within one to two seconds
// after they have lost their leader (etcd's --election-timeout), within milliseconds
// when it left in an orderly way, and who writes then waits a moment for the answer.
const electionPatience = 3 * time.Second

// Electing tells whether the members are likely to be voting.
func (o *Observation) Electing() bool {
	return !o.LeaderlessSince.IsZero() && o.Now.Sub(o.LeaderlessSince) < electionPatience
}

// Leader is the ID of the member that leads a quorum; 0 without one. A member
// that was cut off may still claim to lead for a moment: what most say counts.
func (o *Observation) Leader() uint64 {
	if !o.Quorum {
		return 0
	}
	votes := map[uint64]int{}
	var leader uint64
	for _, m := range o.Members {
		if m.Status == nil || m.Status.LeaderID == 0 || m.Stalled {
			continue
		}
		id := m.Status.LeaderID
		if votes[id]++; votes[id] > votes[leader] {
			leader = id
		}
	}
	return leader
}

// Alarms are those that hold in the cluster. The members agree on them as on their data, so the one that
// has applied most knows best.
func (o *Observation) Alarms() []etcd.Alarm {
	var best *etcd.Status
	for _, m := range o.Members {
		if m.Status != nil && (best == nil || m.Status.RaftApplied > best.RaftApplied) {
			best = m.Status
		}
	}
	if best == nil {
		return nil
	}
	return best.Alarms
}

// Healthy members commit: etcd answers for its state also when its disk hangs.
func (m MemberState) Healthy() bool {
	return m.Status != nil && m.Status.LeaderID != 0 && !m.Stalled
}

// DistrustsOperator tells whether the member doesn't answer because it and the operator
// don't accept each other's certificates: how it is isn't known then, and it may
// be well.
func (m MemberState) DistrustsOperator() bool {
	return etcd.IsTLSFailure(m.Err) || errors.Is(m.Err, ErrNoCertificate)
}

// Answers reports whether the member answers the operator.
func (m MemberState) Answers() bool { return m.Status != nil }

// leader reports whether the member leads. One whose disk hangs goes on saying so when
// another has been elected.
func (m MemberState) leader() bool {
	return m.Status != nil && m.Status.LeaderID == m.ID && !m.Stalled
}

// Foreign members were added by somebody else. They count for the quorum and
// are left alone.
func (m MemberState) Foreign() bool { return m.PodName == "" }

// Joined tells whether a member has started once.
func (m MemberState) Joined() bool { return m.Name != "" || m.Status != nil }

// Lost tells whether a member is gone for good: nothing is left that could run
// it with its data.
func (m MemberState) Lost(now time.Time) bool {
	switch {
	case m.Foreign() || m.Status != nil || m.KeepsData():
		return false
	case m.Pod == nil || m.Pod.Finished:
		return true
	default:
		// A pod that is being deleted is given its time: its etcd may still be
		// handing over. On a node that is gone the deletion never ends.
		return m.Pod.Deleting && (!m.Pod.Running || now.After(m.Pod.DeleteBy))
	}
}

// Own are the members of the operator's making.
func (o *Observation) Own() []MemberState {
	return slices.DeleteFunc(slices.Clone(o.Members), MemberState.Foreign)
}

// Voters are the members with a vote.
func (o *Observation) Voters() []MemberState {
	return slices.DeleteFunc(slices.Clone(o.Members), func(m MemberState) bool { return m.Learner })
}

// Learners are the members without a vote.
func (o *Observation) Learners() []MemberState {
	return slices.DeleteFunc(slices.Clone(o.Members), func(m MemberState) bool { return !m.Learner || m.Foreign() })
}

// Count returns how many members a condition holds for.
func Count(members []MemberState, is func(MemberState) bool) int {
	n := 0
	for _, m := range members {
		if is(m) {
			n++
		}
	}
	return n
}

// IsMember reports whether a pod is that of a member.
func (o *Observation) IsMember(pod string) bool {
	return slices.ContainsFunc(o.Members, func(m MemberState) bool { return m.PodName == pod })
}

// Unreached reports whether a member that does not answer the operator takes part in the
// quorum nevertheless: the kubelet asks it on its own node, and is told so. A network
// policy between the operator and the members is enough for that.
func (m MemberState) Unreached() bool {
	if m.Status != nil || m.Pod == nil || !m.Pod.Ready || m.Pod.Deleting {
		return false
	}
	// Before, ready means no more than that a port is open.
	v, err := etcd.ParseVersion(m.Pod.Version)
	return err == nil && (v.HasMetricsListener() || m.Pod.Legacy)
}

// quorumWithout tells whether the healthy voters but m are a quorum of the
// membership without m.
func (o *Observation) quorumWithout(m MemberState) bool {
	others := slices.DeleteFunc(o.Voters(), func(v MemberState) bool { return v.ID == m.ID })
	return len(others) > 0 && Count(others, MemberState.Healthy) >= etcd.Quorum(len(others))
}

// NobodyAnswers tells whether there may be members, and none of them could say who they are:
// a loaded machine is enough for that. It says nothing of what is under way.
func (o *Observation) NobodyAnswers() bool {
	return o.Status.Phase == api.ClusterPhaseRunning && len(o.Members) == 0 && len(o.Pods)+len(o.Volumes) > 0
}

// HasMember tells whether the membership has a member that passes a check.
func (o *Observation) HasMember(check func(MemberState) bool) bool {
	return slices.ContainsFunc(o.Members, check)
}

// KeepsData tells whether the member's data outlives its pod. A learner that has
// never started has none.
func (m MemberState) KeepsData() bool {
	return m.Volume != nil && !m.Volume.Deleting && (!m.Learner || m.Joined())
}
