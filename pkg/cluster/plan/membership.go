// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

const (
	// joinDeadline is how long a new member may take from the creation of its pod to its first
	// answer. Then the operator replaces it by another, perhaps on another node.
	joinDeadline = 5 * time.Minute

	// WedgeDeadline is how long a member with a pod may be silent before the operator replaces
	// it. It is long because a restart, a node's reboot or the start of a large database is
	// cheaper than another copy of the data. The time without a quorum does not count.
	WedgeDeadline = 10 * time.Minute

	// settleTime is how long a quorum must exist before the operator replaces a member. After
	// an outage, or a pause of the operator, members return one by one.
	settleTime = 30 * time.Second

	// holdUpDeadline is how long pods that could join may wait for an earlier one that finds
	// no node.
	holdUpDeadline = 20 * time.Second

	// smallDatabase is the size up to which several learners may copy the database from the
	// leader at the same time.
	smallDatabase = 128 << 20
)

// replaceLostMember removes a member that will not return, so that another can replace it. A
// learner has no vote and can always go. A voter can go if the others keep a quorum without
// it.
func replaceLostMember(o *Observation) Step {
	for _, m := range o.Own() {
		switch {
		case !m.Lost(o.Now):
		case m.Learner && m.Pod == nil && !m.Joined() && !o.Gate:
			// makeAddedMembersPod handles it.
		case m.Learner:
			return m.removeWithoutPod(false)
		case o.quorumWithout(m):
			return m.removeWithoutPod(true)
		}
	}
	return nil
}

// replaceWedgedMember removes a voter with a pod that has been silent for long. A pod without
// a working image needs a person: its replacement would have the same image. One that receives a copy of the
// database stays: its replacement would need a copy too.
func replaceWedgedMember(o *Observation) Step {
	if o.Now.Sub(o.QuorumSince) < settleTime {
		return nil // it may be about to answer, as the others just did
	}
	// If a pod can't start as the first one after an edit, the edit is at fault: the next one
	// would not start either.
	edited := slices.ContainsFunc(o.Own(), o.BehindTemplate)
	for _, m := range o.Voters() { // dropStuckLearner judges learners
		if m.Pod == nil || m.DistrustsOperator() || m.Unreached() || m.SilentFor(o.Now) <= WedgeDeadline || o.catchesUp(m) || !o.quorumWithout(m) {
			continue
		}
		switch {
		case m.Pod.LostNode(o.Now) || m.Pod.OffVolume || m.Pod.Dataless:
			// Nothing can start it there, whatever its image and its template.
		case edited && !m.Pod.Started && !o.podOutdated(*m.Pod), m.Pod.BadImage, m.Pod.Version != o.joinVersion():
			continue
		case o.TriesEdit(m), o.awaitsRepair(m):
			continue
		case o.mayRecoverFromEdit(m) && (o.UpdatePutOff || m.Pod.DeletePutOff && !m.Pod.DeleteRefused):
			continue // Kubernetes refuses its pod, and would refuse that of a replacement, or has failed once to delete it
		case !o.dataDiffers() && !o.PeersRefuse() && o.mayRecoverFromEdit(m) && !m.Pod.DeletePutOff:
			return recycle(*m.Pod, "it has not answered for "+WedgeDeadline.String()+", and the spec has changed since it was made")
		}
		if o.dataDiffers() && !m.Pod.Dataless {
			continue // its data may be the right one, and without it etcd refuses writes all the same
		}
		if o.PeersRefuse() {
			continue // it may only have lost its connections
		}
		if m.Stalled {
			return m.remove(true, "it answers, but has confirmed no reads for "+WedgeDeadline.String())
		}
		return m.remove(true, "it has not answered for "+WedgeDeadline.String())
	}
	return nil
}

// dropSurplusLearner removes a learner that exceeds a smaller size, instead of letting it copy
// the database first.
func dropSurplusLearner(o *Observation) Step {
	if learners := o.Learners(); len(learners) > 0 && len(o.Own()) > o.size() {
		last := learners[len(learners)-1]
		return last.remove(false, fmt.Sprintf("the size is %d", o.Spec.Size))
	}
	return nil
}

// promoteLearner gives a vote to the learner that is least behind. etcd itself refuses one
// that is not in sync. No member votes before the note that it has data, or while it is about to
// stop: the end of a learner costs nothing, and that of a voter can cost the quorum.
func promoteLearner(o *Observation) Step {
	var ready []MemberState
	for _, m := range o.Learners() {
		if steady(m) && (m.Pod == nil || !m.Pod.Guarded || m.Pod.Noted) && o.mayVote(m) {
			ready = append(ready, m)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	best := slices.MaxFunc(ready, func(a, b MemberState) int { return cmp.Compare(a.Status.RaftApplied, b.Status.RaftApplied) })
	if !o.delaysNoWrite(best) {
		return nil // awaitLearners
	}
	return PromoteMember{best.ID, best.PodName}
}

// dropStuckLearner removes a learner that can't start any more, or takes too long, or whose node does not
// end its deleted pod. It has no vote: nothing is lost with it.
func dropStuckLearner(o *Observation) Step {
	for _, m := range o.Learners() {
		if m.Pod == nil || m.DistrustsOperator() || m.Healthy() && !m.Pod.LostNode(o.Now) {
			continue
		}
		var why string
		switch {
		case m.Healthy():
			why = "its pod was deleted, and its node does not end it"
		case m.Pod.Dataless:
			// etcd was started once, and its pod never starts it again without data.
			why = "its data is gone, and it had no vote yet"
		case !m.Joined() && !o.canJoin(m.Pod.InitialCluster) && !m.Copies(o.Now):
			why = "the membership changed before it started"
		case !m.Joined() && !m.Pod.Started && !o.hasJoinImage(*m.Pod):
			why = "the image for new members is now " + o.Image(o.joinVersion())
		case !m.Joined() && !m.Pod.Started && o.BehindTemplate(m):
			why = "the spec has changed since its pod was made"
		case o.overdue(m) && !o.PeersRefuse():
			why = fmt.Sprintf("it did not start within %s: %s", joinDeadline, m.Pod.Trouble())
		default:
			continue
		}
		return m.remove(false, why)
	}
	return nil
}

// makeAddedMembersPod creates the pod of an existing member. The operator adds the member first
// if check-dns can't wait for the membership (spec.pod.busyboxImage).
func makeAddedMembersPod(o *Observation) Step {
	if o.Gate {
		return nil
	}
	for _, m := range o.Own() {
		if m.Pod == nil && !m.Joined() {
			return CreatePods{
				Pods: []manifest.MemberPod{{Name: m.PodName, Version: o.joinVersion(), InitialCluster: o.initialCluster(nil), Volume: o.Spec.Persistent()}},
				why:  "the member was added",
			}
		}
	}
	return nil
}

// awaitJoiningVoter waits for a member that joins with a vote, because its etcd has no
// learners. Until it has started, the quorum has no reserve. The exception to the wait is a
// member that needs the node of another one.
func awaitJoiningVoter(o *Observation) Step {
	for _, m := range o.Voters() {
		if m.Joined() || m.Foreign() || m.Pod == nil {
			continue
		}
		switch {
		case !o.quorumWithout(m) || o.PeersRefuse():
		case !m.Pod.Started && !o.canJoin(m.Pod.InitialCluster):
			return m.remove(false, "the membership changed before it started")
		case o.Now.Sub(m.Pod.Created) > joinDeadline:
			return m.remove(true, fmt.Sprintf("it did not start within %s: %s", joinDeadline, m.Pod.Trouble()))
		}
		if s := o.makeRoomForMember(m); s != nil {
			return s
		}
		return Wait{"for " + m.PodName + " to join"}
	}
	return nil
}

// canJoin reports whether a member with this --initial-cluster can still find exactly this
// membership: all current members, and otherwise only members whose pods wait to join.
func (o *Observation) canJoin(ic etcd.InitialCluster) bool {
	for _, m := range o.Members {
		for _, u := range m.PeerURLs {
			if _, ok := ic[u]; !ok {
				return false
			}
		}
	}
	for peerURL, name := range ic {
		isMember := slices.ContainsFunc(o.Members, func(m MemberState) bool { return slices.Contains(m.PeerURLs, peerURL) })
		if !isMember && !slices.ContainsFunc(o.Planned(), func(p manifest.PodState) bool { return p.Name == name }) {
			return false
		}
	}
	return true
}

// initialCluster returns the membership with further members.
func (o *Observation) initialCluster(further []string) etcd.InitialCluster {
	ic := etcd.InitialCluster{}
	for _, m := range o.Members {
		name := m.Name
		if name == "" {
			name = m.PodName
		}
		if name == "" || m.Foreign() && o.IsMember(name) {
			name = etcd.FormatID(m.ID) // two of one name would count as one member
		}
		for _, u := range m.PeerURLs {
			ic[u] = name
		}
	}
	for _, name := range further {
		ic[o.Names.PeerURL(name)] = name
	}
	return ic
}

// joinPlanned adds the next member with a prepared pod and waits for it. It precedes the
// promotion of earlier learners: after each new vote, etcd accepts no further member for five
// seconds (its HealthInterval).
func joinPlanned(o *Observation) Step {
	planned := o.Planned()
	if len(planned) == 0 || !planned[0].AtGate || planned[0].DeletePutOff || o.promoters() != "" || len(o.Learners()) >= o.learnerLimit() {
		return nil
	}
	next := planned[0]
	for _, m := range o.Learners() {
		// A learner that has not started compares the membership with its own
		// --initial-cluster, so no other member may join meanwhile.
		if !m.Joined() && (m.Pod == nil || m.Pod.InitialCluster[o.Names.PeerURL(next.Name)] == "") {
			return nil
		}
	}
	return o.add(next.Name)
}

// add adds a member: as a learner if etcd supports them. It adds a voter only while all others
// are healthy, because a voter counts before it has started.
func (o *Observation) add(name string) Step {
	v, ok := o.LowestVersion()
	learner := o.Importing() || ok && v.HasLearners()
	if !learner && Count(o.Voters(), MemberState.Healthy) < len(o.Voters()) {
		return Wait{"for all members to be healthy before " + name + " is added"}
	}
	return AddMember{name, learner}
}

// awaitLearners holds back later rules while members join: the membership changes in one
// direction at a time. The exception is a learner that needs the node of another member.
func awaitLearners(o *Observation) Step {
	if learners := o.Learners(); len(learners) > 0 {
		if s := o.makeRoomForMember(learners[0]); s != nil {
			return s
		}
		switch l := learners[0]; {
		case stopping(l):
			return Wait{o.awaited(l, "it gets a vote")}
		case !o.Importing() || !l.Healthy():
		case !o.Import.Proven[l.ID] && len(o.FormerVoters()) > 0:
			return Wait{cmp.Or(o.Import.Doubt, "for the proof that "+l.PodName+" holds the data of the imported etcd")}
		case !o.mayVote(l):
			return nil // the import waits for the user's word
		}
		if l := learners[0]; l.Healthy() && !o.delaysNoWrite(l) {
			return Wait{"for " + l.PodName + " to catch up before it gets a vote"}
		}
		return Wait{"for " + learners[0].PodName + " to join"}
	}
	return nil
}

// learnerLimit is how many learners there may be at a time.
func (o *Observation) learnerLimit() int {
	v, ok := o.LowestVersion()
	if !ok || !v.HasMaxLearners() {
		return 1
	}
	for _, m := range o.Members {
		if m.Pod == nil || !m.Pod.ManyLearners || m.Status != nil && m.Status.DBSize > smallDatabase {
			return 1
		}
	}
	return manifest.ManyLearners
}

// removeOneMember shrinks the cluster by the member that matters least.
func removeOneMember(o *Observation) Step {
	own := o.Own()
	if len(own) <= o.Spec.Size {
		return nil
	}
	crowd := map[string]int{}
	for _, m := range own {
		if m.Pod != nil {
			crowd[m.Pod.Node]++
		}
	}
	rank := func(m MemberState) int {
		rank := 0
		if !m.Healthy() {
			return rank
		}
		if m.leader() {
			rank++
		}
		if !o.needsReplacing(m) {
			rank += 2 // its replacement has joined
		}
		return rank + 1
	}
	node := func(m MemberState) string {
		if m.Pod == nil {
			return ""
		}
		return m.Pod.Node
	}
	victim := slices.MinFunc(own, func(a, b MemberState) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			-cmp.Compare(crowd[node(a)], crowd[node(b)]), // keep the spread over nodes
			-cmp.Compare(a.PodName, b.PodName),
		)
	})
	if o.dataDiffers() && !victim.Learner {
		return Wait{"for somebody to compare the members and to lift the alarm CORRUPT before " + victim.PodName + " can be removed: its data may be the right one"}
	}
	if !o.quorumWithout(victim) {
		return Wait{"for more healthy members before " + victim.PodName + " can be removed"}
	}
	if i := slices.IndexFunc(o.Voters(), stopping); i >= 0 && victim.Healthy() && !o.quorumOfOthers(victim, steady) {
		return Wait{"for " + o.Voters()[i].Title() + " to restart before " + victim.PodName + " can be removed"}
	}
	if o.leadsInSilence(victim) {
		return Wait{"for an answer of " + victim.PodName + ", which leads according to the others"}
	}
	if why := o.returning(); why != "" && victim.Healthy() && !victim.Learner {
		return Wait{why}
	}
	if s := o.handOver(victim); s != nil {
		return s
	}
	why := fmt.Sprintf("the size is %d", o.Spec.Size)
	if o.Surge() {
		why = "another that follows the spec has joined in its place"
	}
	return victim.remove(false, why)
}

// delaysNoWrite reports whether writes need not wait for a learner that gets a vote. etcd finds a learner in sync
// with nine tenths of the log. In an old cluster, it may lack millions of entries, and no write succeeds
// until it has them, unless the others are a quorum without it.
func (o *Observation) delaysNoWrite(m MemberState) bool {
	voters := o.Voters()
	if Count(voters, MemberState.Healthy) >= etcd.Quorum(len(voters)+1) {
		return true
	}
	return o.lastIndex() <= m.Status.RaftIndex+catchUpEntries
}

// addMembers creates the pods of missing members. The pods start together; the operator adds
// the members one by one as their pods become ready. After a pod has found no node, the
// operator creates the next pods one by one. Otherwise the last of several pods could take the
// only free node, and the operator would recreate them all, again and again. None is created while a
// member finds no node: the new one could take it.
func addMembers(o *Observation) Step {
	missing := o.wanted() - len(o.Own()) - len(o.Planned())
	if missing <= 0 || o.crowdedOut() != nil || o.littered() || o.endedLately() != nil || o.promoters() != "" {
		return nil
	}
	why := fmt.Sprintf("the size is %d", o.Spec.Size)
	if !o.Gate {
		return o.add(o.newName())
	}
	if o.JoinSingly {
		if len(o.Planned()) > 0 {
			return nil
		}
		missing = 1
	}
	return CreatePods{Pods: o.joinPods(o.plannedNames(), missing, o.joinVersion()), why: why}
}
