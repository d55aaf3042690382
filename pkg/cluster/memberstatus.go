// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// leastSizeChange is below what no change of a database's size is worth a
	// write of the status, even if it is a tenth.
	leastSizeChange = 1 << 20
	// leastLag is the lag that a loaded member has without being behind: etcd
	// answers one member's question after the other's.
	leastLag = 1000
)

// setMemberStatuses tells what is known of each member, by name. Numbers that
// have hardly changed stay as they are on record, unless something else is
// written: a loaded cluster must not cause a write with each pass.
func setMemberStatuses(st *api.ClusterStatus, o *observation) {
	st.MemberStatuses = knownMembers(o)
	if st.Phase == api.ClusterPhaseFailed {
		st.MemberStatuses = nil // there are none
	}
}

func knownMembers(o *observation) []api.MemberStatus {
	if len(o.members) == 0 {
		return silentMembers(o)
	}
	return memberStatuses(o)
}

// keepNumbers takes the numbers on record where they are near enough and
// nothing else is new.
func keepNumbers(st *api.ClusterStatus, old []api.MemberStatus) {
	if len(old) != len(st.MemberStatuses) {
		return
	}
	kept := slices.Clone(st.MemberStatuses)
	for i := range kept {
		if !near(kept[i], old[i]) {
			return
		}
		kept[i].DBSize, kept[i].DBSizeInUse, kept[i].RaftIndexLag = old[i].DBSize, old[i].DBSizeInUse, old[i].RaftIndexLag
	}
	st.MemberStatuses = kept
}

// near tells whether a member's numbers have changed by less than a tenth. What
// is in use swings with each compaction, so that it is measured by the file.
func near(a, b api.MemberStatus) bool {
	within := func(a, b, of, least int64) bool { return max(a-b, b-a) < max(least, of/10) }
	return within(a.DBSize, b.DBSize, b.DBSize, leastSizeChange) &&
		within(a.DBSizeInUse, b.DBSizeInUse, b.DBSize, leastSizeChange) &&
		within(a.RaftIndexLag, b.RaftIndexLag, b.RaftIndexLag, leastLag)
}

func memberStatuses(o *observation) []api.MemberStatus {
	leader, alarms := o.leader(), o.alarms()
	var newest uint64 // entry that a member has logged
	for _, m := range o.members {
		if m.status != nil {
			newest = max(newest, m.status.RaftIndex)
		}
	}
	var list []api.MemberStatus
	for _, m := range o.members {
		s := api.MemberStatus{
			Name: cmp.Or(m.name, m.Name), ID: etcd.FormatID(m.ID), Learner: m.Learner,
			Leader: m.ID == leader, Problem: m.problem(o),
		}
		// A foreign member is not asked. What leads is healthy all the same.
		s.Healthy = s.Problem == "" || m.foreign() && s.Leader
		if m.status != nil {
			s.Version, s.DBSize, s.DBSizeInUse = m.status.Version, m.status.DBSize, m.status.DBInUse
			s.RaftIndexLag = int64(newest - min(newest, m.status.RaftApplied)) //nolint:gosec // far from 2^63 entries
		}
		for _, a := range alarms {
			if a.MemberID == m.ID {
				s.Alarms = append(s.Alarms, a.Type)
			}
		}
		list = append(list, s)
	}
	sortMembers(list)
	return list
}

// silentMembers are the members on record when nobody answers who they are.
func silentMembers(o *observation) []api.MemberStatus {
	var list []api.MemberStatus
	for _, old := range o.status.MemberStatuses {
		m := memberState{name: old.Name, pod: o.pod(old.Name), volume: o.volume(old.Name), Member: etcd.Member{Name: old.Name, Learner: old.Learner}}
		list = append(list, api.MemberStatus{Name: old.Name, ID: old.ID, Learner: old.Learner, Problem: m.problem(o)})
	}
	return list
}

func sortMembers(list []api.MemberStatus) {
	slices.SortFunc(list, func(a, b api.MemberStatus) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
}

// problem says why a member is not healthy, in words that stay the same as long
// as the reason does; empty if it is healthy.
func (m memberState) problem(o *observation) string {
	switch {
	case m.foreign():
		return "the operator did not make it and does not ask it"
	case m.status != nil && m.status.LeaderID == 0:
		return "knows no leader: it does not reach a majority of the members"
	case m.status != nil && !o.quorum:
		return "serves no reads: it does not reach a majority of the members"
	case m.stalled:
		return "answers, but confirms no reads: its disk hangs, or it does not reach a majority of the members"
	case m.status != nil:
		return ""
	case m.pod == nil && m.keepsData():
		return "its pod is gone; it is made again on its volume"
	case m.pod == nil:
		return "its pod is gone, and its data with it"
	case m.pod.lostNode(o.now):
		return "its node does not answer, and its pod can't be deleted: it is replaced when that has lasted for " + wedgeDeadline.String() + " and the others are a quorum"
	case m.pod.deleting:
		return "its pod is being deleted"
	case m.pod.problem != "":
		return m.pod.problem
	case !m.pod.running && m.pod.started:
		return "etcd is being started again"
	case !m.pod.running:
		return "etcd has not started yet"
	case m.copies(o.now):
		return "receives a copy of the database"
	case m.unreached() && cause(m.err) == "":
		return "Kubernetes says that it is ready, but it does not answer the operator: see whether a NetworkPolicy or the network keeps the operator from port 2379 of its pod"
	default:
		return "runs, but does not answer" + cause(m.err)
	}
}

// cause is why a member does not answer, where that says more than that it doesn't.
// Most errors hold ports and times, and are another one each time: refused, reset,
// not in time.
func cause(err error) string {
	switch {
	case errors.Is(err, errOtherMember):
		return ": " + err.Error()
	case errors.Is(err, errNoCertificate):
		return ": " + errNoCertificate.Error()
	case etcd.IsTLSFailure(err):
		return ": the TLS handshake failed: " + notice.Shorten(etcd.TLSCause(err), 200)
	default:
		return ""
	}
}

// leader is the ID of the member that leads a quorum; 0 without one. A member
// that was cut off may still claim to lead for a moment: what most say counts.
func (o *observation) leader() uint64 {
	if !o.quorum {
		return 0
	}
	votes := map[uint64]int{}
	var leader uint64
	for _, m := range o.members {
		if m.status == nil || m.status.LeaderID == 0 || m.stalled {
			continue
		}
		id := m.status.LeaderID
		if votes[id]++; votes[id] > votes[leader] {
			leader = id
		}
	}
	return leader
}

// alarms are those that hold in the cluster. The members agree on them as on their data, so the one that
// has applied most knows best.
func (o *observation) alarms() []etcd.Alarm {
	var best *etcd.Status
	for _, m := range o.members {
		if m.status != nil && (best == nil || m.status.RaftApplied > best.RaftApplied) {
			best = m.status
		}
	}
	if best == nil {
		return nil
	}
	return best.Alarms
}
