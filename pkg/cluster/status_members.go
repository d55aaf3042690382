// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// leastSizeChange is the smallest change of a database's size that is worth a write of the
	// status.
	leastSizeChange = 1 << 20
	// leastLag is the lag of a loaded member that is not behind: etcd answers one member's
	// request after the other's.
	leastLag = 1000
)

// setMemberStatuses sets the status of each member, by name. Numbers that hardly changed stay
// as recorded, unless something else changes: a loaded cluster must not cause a write in each
// pass.
func setMemberStatuses(st *api.ClusterStatus, o *plan.Observation) {
	st.MemberStatuses = knownMembers(o)
	if st.Phase == api.ClusterPhaseFailed {
		st.MemberStatuses = nil // there are none
	}
}

func knownMembers(o *plan.Observation) []api.MemberStatus {
	if len(o.Members) == 0 {
		return silentMembers(o)
	}
	return memberStatuses(o)
}

// keepNumbers keeps the recorded numbers if they are near enough and nothing else is new.
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

// near reports whether a member's numbers have changed by less than a tenth. The used size
// swings with each compaction, so near compares the file's size.
func near(a, b api.MemberStatus) bool {
	within := func(a, b, of, least int64) bool { return max(a-b, b-a) < max(least, of/10) }
	return within(a.DBSize, b.DBSize, b.DBSize, leastSizeChange) &&
		within(a.DBSizeInUse, b.DBSizeInUse, b.DBSize, leastSizeChange) &&
		within(a.RaftIndexLag, b.RaftIndexLag, b.RaftIndexLag, leastLag)
}

func memberStatuses(o *plan.Observation) []api.MemberStatus {
	leader, alarms := o.Leader(), o.Alarms()
	var newest uint64 // the last entry that a member has logged
	for _, m := range o.Members {
		if m.Status != nil {
			newest = max(newest, m.Status.RaftIndex)
		}
	}
	var list []api.MemberStatus
	for _, m := range o.Members {
		s := api.MemberStatus{
			Name: cmp.Or(m.PodName, m.Name), ID: etcd.FormatID(m.ID), Learner: m.Learner,
			Leader: m.ID == leader, Problem: problem(m, o),
		}
		// The operator does not ask a foreign member. A leader is healthy in any case.
		s.Healthy = s.Problem == "" || m.Foreign() && s.Leader
		if m.Status != nil {
			s.Version, s.DBSize, s.DBSizeInUse = m.Status.Version, m.Status.DBSize, m.Status.DBInUse
			s.RaftIndexLag = int64(newest - min(newest, m.Status.RaftApplied)) // far from 2^63 entries
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

// silentMembers are the recorded members if no member answers.
func silentMembers(o *plan.Observation) []api.MemberStatus {
	var list []api.MemberStatus
	for _, old := range o.Status.MemberStatuses {
		m := plan.MemberState{Member: etcd.Member{Name: old.Name, Learner: old.Learner}}
		if !o.OfOthers(old.Name, old.ID) {
			m.PodName, m.Pod, m.Volume = old.Name, o.Pod(old.Name), o.Volume(old.Name)
		}
		list = append(list, api.MemberStatus{Name: old.Name, ID: old.ID, Learner: old.Learner, Problem: problem(m, o)})
	}
	return list
}

func sortMembers(list []api.MemberStatus) {
	slices.SortFunc(list, func(a, b api.MemberStatus) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
}

// copiesDatabase says what a member does that serves nothing meanwhile (etcd.CopiesDatabase).
const copiesDatabase = "receives a copy of the database, or defragments it"

// problem says why a member is unhealthy, in words that stay the same as long as the reason;
// empty if it is healthy.
func problem(m plan.MemberState, o *plan.Observation) string {
	switch {
	case m.Foreign() && o.Importing() && m.Status == nil:
		return "it does not answer at an endpoint of spec.importFrom"
	case m.Foreign() && !o.Importing():
		return "the operator did not create it and does not ask it"
	case m.Status != nil && m.Status.LeaderID == 0:
		return "knows no leader: it does not reach a majority of the members"
	case m.Status != nil && !o.Quorum:
		return "serves no reads: it does not reach a majority of the members"
	case m.Stalled && m.Copies(o.Now):
		return copiesDatabase
	case m.Stalled:
		return "answers, but confirms no reads: its disk hangs, or it does not reach a majority of the members"
	case m.Status != nil:
		return ""
	case m.Pod == nil && m.KeepsData():
		return "its pod is gone; the operator recreates it on its volume"
	case m.Pod == nil:
		return "its pod is gone, and its data with it"
	case m.Pod.KeptBy != "":
		return "its pod has ended, and the finalizer " + m.Pod.KeptBy + " keeps it: find out why nobody removes this finalizer, or remove it by hand"
	case m.Pod.LostNode(o.Now):
		return "its node does not answer, and its pod can't be deleted: the operator replaces it when that has lasted for " + plan.WedgeDeadline.String() + " and the others are a quorum"
	case m.Pod.Deleting:
		return "its pod is being deleted"
	case o.Recovery.NotServing[m.PodName].MemberID != 0:
		return "has restarted, and serves no clients until it reaches a majority of the members"
	case m.Pod.Problem != "":
		return m.Pod.Problem
	case !m.Pod.Running && m.Pod.Started:
		return "etcd restarts"
	case !m.Pod.Running:
		return "etcd has not started yet"
	case m.Copies(o.Now):
		return copiesDatabase
	case m.Unreached() && cause(m.Err) == "":
		return "Kubernetes says that it is ready, but it does not answer the operator: see whether a NetworkPolicy or the network keeps the operator from port 2379 of its pod"
	default:
		return "runs, but does not answer" + cause(m.Err)
	}
}

// cause adds why a member does not answer, if that is known. Most errors contain ports and
// times, which differ each time: refused, reset, timed out.
func cause(err error) string {
	switch {
	case errors.Is(err, plan.ErrOtherMember):
		return ": " + err.Error()
	case errors.Is(err, plan.ErrNoCertificate):
		return ": " + plan.ErrNoCertificate.Error()
	case etcd.IsTLSFailure(err):
		return ": the TLS handshake failed: " + notice.Shorten(etcd.TLSCause(err), 200)
	default:
		return ""
	}
}
