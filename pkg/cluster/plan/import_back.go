// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// takeBackImport restores the former membership when somebody deletes the EtcdCluster before the
// commit. Only the own members leave: learners and those that are down first, then the last one
// that joined, and the leader last.
func takeBackImport(o *Observation) Step {
	if !o.Ending || !o.Import.Held {
		return nil
	}
	own := o.Own()
	switch {
	case !o.Importing():
		return ReleaseImport{}
	case o.Copying():
		return o.takeBackCopy()
	case !o.Status.Import.Begun() && o.Quorum && len(o.FormerVoters()) > 0:
		return o.beginImport() // somebody wiped the status, and the own members are on the list
	case !o.Status.Import.Begun() && (o.Quorum || len(o.Pods) == 0):
		return ReleaseImport{}
	case o.Committed():
		return nil // the import goes forward to its end
	case o.Quorum && o.Spec.ImportFrom != nil && o.Spec.ImportFrom.Commit && len(o.FormerVoters()) == 0 && len(o.ownVoters()) > 0:
		return CommitImport{} // somebody wiped the status, and no former member is left to go back to
	case !o.Quorum && o.Spec.ImportFrom == nil:
		return Wait{"for " + putImportBack + "; " + leaveListed}
	case !o.Quorum:
		return Wait{"for a quorum of the imported etcd, which the members can't leave without" + o.importProblem() + ": start its members; " + leaveListed}
	case len(own) == 0:
		return ReleaseImport{}
	}
	return o.letGo(own, "the EtcdCluster is being deleted before the commit of its import")
}

// letGo removes one of the own members from the imported etcd. No healthy one leaves that the quorum
// needs, as long as one that is down could.
func (o *Observation) letGo(own []MemberState, why string) Step {
	last := slices.MaxFunc(own, func(a, b MemberState) int {
		return cmp.Or(
			compareBool(a.Learner, b.Learner),
			-compareBool(steady(a), steady(b)),
			-compareBool(a.leader(), b.leader()),
			cmp.Compare(a.joinedAs(), b.joinedAs()),
			cmp.Compare(a.PodName, b.PodName),
		)
	})
	// If no former member answers the operator, one of them is in the quorum nevertheless. etcd judges
	// then, which refuses to remove a member that its peers need.
	seen := slices.ContainsFunc(o.FormerVoters(), MemberState.Healthy)
	if !last.Learner && seen && !o.quorumWithout(last) {
		return Wait{"for more healthy members before " + last.PodName + " can leave: start those of the imported etcd; " + leaveListed}
	}
	if s := o.handBack(last); s != nil {
		return s
	}
	return last.remove(false, why)
}

// leaveListed says how to delete an EtcdCluster whose members can't leave.
const leaveListed = "or, to delete the EtcdCluster and leave its members on the list, remove the finalizer " + api.ImportFinalizer

// joinedAs is the size of the membership in which a member joined; 0: unknown.
func (m MemberState) joinedAs() int {
	if m.Pod == nil {
		return 0
	}
	return len(m.Pod.InitialCluster)
}

// handBack moves leadership from an own member to a former one; nil if the own one does not lead.
func (o *Observation) handBack(m MemberState) Step {
	if !m.leader() || m.Pod == nil {
		return nil
	}
	for _, former := range o.FormerVoters() {
		if former.Healthy() {
			return MoveLeader{From: m.PodName, IP: m.Pod.IP, To: former.Title(), ID: former.ID}
		}
	}
	why := "for a former member that can lead while " + m.PodName + " leaves" + o.importProblem()
	if o.Spec.ImportFrom == nil {
		why += ", and for " + putImportBack
	}
	return Wait{why}
}
