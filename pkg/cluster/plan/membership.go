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
	// joinDeadline is how long a new member may take from the making of its pod
	// to its first answer. Then it is given up and another is tried, perhaps on
	// another node.
	joinDeadline = 5 * time.Minute

	// WedgeDeadline is how long a member whose pod is there may not answer
	// before it is replaced. It is long because a restart, a node's reboot or a
	// large database's start are cheaper than copying the data again.
	WedgeDeadline = 10 * time.Minute

	// settleTime is how long a quorum has to be there before a member is given up.
	// After an outage, and after a time in which the operator did not look, members
	// come back one by one.
	settleTime = 30 * time.Second

	// holdUpDeadline is how long pods that could join may wait for one that was to
	// join before them and finds no node.
	holdUpDeadline = 20 * time.Second

	// smallDatabase is up to which size several learners may copy the database
	// from the leader at the same time.
	smallDatabase = 128 << 20
)

// replaceLostMember removes a member that will not come back, so that another
// can take its place. A learner has no vote and can always go; a voter goes if
// the others keep a quorum without it.
func replaceLostMember(o *Observation) Step {
	for _, m := range o.Own() {
		switch {
		case !m.Lost(o.Now):
		case m.Learner && m.Pod == nil && !m.Joined() && !o.Gate:
			// makeAddedMembersPod comes to it.
		case m.Learner:
			return m.removeWithoutPod(false)
		case o.quorumWithout(m):
			return m.removeWithoutPod(true)
		}
	}
	return nil
}

// replaceWedgedMember removes a member whose pod is there but that doesn't
// answer for long. A pod without a working image is left for a person: the next
// one would have the same image.
func replaceWedgedMember(o *Observation) Step {
	if o.Now.Sub(o.QuorumSince) < settleTime {
		return nil // it may be about to answer, as the others just did
	}
	// A pod that can't start as the first that follows an edit is the edit's
	// doing: the next one would not start either.
	edited := slices.ContainsFunc(o.Own(), o.BehindTemplate)
	for _, m := range o.Own() {
		if m.Pod == nil || m.DistrustsOperator() || m.Unreached() || m.DownSince.IsZero() || o.Now.Sub(m.DownSince) <= WedgeDeadline || !o.quorumWithout(m) {
			continue
		}
		switch {
		case m.Pod.LostNode(o.Now) || m.Pod.OffVolume || m.Pod.Dataless:
			// Whatever its image and its template are, nothing can start it there.
		case edited && !m.Pod.Started && !o.podOutdated(*m.Pod), m.Pod.BadImage, m.Pod.Version != o.joinVersion():
			continue
		}
		if m.Stalled {
			return m.remove(true, "it answers, but has confirmed no reads for "+WedgeDeadline.String())
		}
		return m.remove(true, "it has not answered for "+WedgeDeadline.String())
	}
	return nil
}

// dropSurplusLearner takes back a learner that the size no longer asks for,
// rather than let it copy the database first.
func dropSurplusLearner(o *Observation) Step {
	if learners := o.Learners(); len(learners) > 0 && len(o.Own()) > o.size() {
		last := learners[len(learners)-1]
		return last.remove(false, fmt.Sprintf("the size is %d", o.Spec.Size))
	}
	return nil
}

// promoteLearner gives its vote to the learner that is least behind. etcd itself
// refuses one that isn't in sync. Nobody votes before it is noted that it has data.
func promoteLearner(o *Observation) Step {
	var ready []MemberState
	for _, m := range o.Learners() {
		if m.Healthy() && (m.Pod == nil || !m.Pod.Guarded || m.Pod.Noted) {
			ready = append(ready, m)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	best := slices.MaxFunc(ready, func(a, b MemberState) int { return cmp.Compare(a.Status.RaftApplied, b.Status.RaftApplied) })
	return PromoteMember{best.ID, best.PodName}
}

// dropStuckLearner gives up a learner that can't start any more, or takes too
// long. It has no vote: nothing is lost with it.
func dropStuckLearner(o *Observation) Step {
	for _, m := range o.Learners() {
		if m.Healthy() || m.Pod == nil || m.DistrustsOperator() {
			continue
		}
		var why string
		switch {
		case !m.Joined() && !o.canJoin(m.Pod.InitialCluster) && !m.Copies(o.Now):
			why = "the membership changed before it started"
		case !m.Joined() && !m.Pod.Started && m.Pod.Image != o.Image(o.joinVersion()):
			why = "the image for new members is now " + o.Image(o.joinVersion())
		case !m.Joined() && !m.Pod.Started && o.BehindTemplate(m):
			why = "the spec has changed since its pod was made"
		case o.overdue(m):
			why = fmt.Sprintf("it did not start within %s: %s", joinDeadline, m.Pod.Trouble())
		default:
			continue
		}
		return m.remove(false, why)
	}
	return nil
}

// makeAddedMembersPod makes the pod of a member that was added first, which is
// the order where check-dns can't wait for the membership (spec.pod.busyboxImage).
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

// awaitJoiningVoter waits for a member that was added with a vote, because its
// etcd has no learners: until it has started, the quorum has nothing to spare.
func awaitJoiningVoter(o *Observation) Step {
	for _, m := range o.Voters() {
		if !m.Joined() && !m.Foreign() && m.Pod != nil {
			if o.Now.Sub(m.Pod.Created) > joinDeadline && o.quorumWithout(m) {
				return m.remove(true, fmt.Sprintf("it did not start within %s: %s", joinDeadline, m.Pod.Trouble()))
			}
			return Wait{"for " + m.PodName + " to join"}
		}
	}
	return nil
}

// canJoin tells whether a member that was started with this --initial-cluster
// can still find exactly this membership: all of today's members, and besides
// them only members whose pods wait to join.
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

// initialCluster is the membership with further members.
func (o *Observation) initialCluster(further []string) etcd.InitialCluster {
	ic := etcd.InitialCluster{}
	for _, m := range o.Members {
		name := m.Name
		if name == "" {
			name = m.PodName
		}
		if name == "" {
			name = etcd.FormatID(m.ID)
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

// joinPlanned adds the next member whose pod was made ahead and waits for it. It
// comes before the promotion of those that were added before: with each vote that
// is new, etcd takes no further member for five seconds (its HealthInterval).
func joinPlanned(o *Observation) Step {
	planned := o.Planned()
	if len(planned) == 0 || !planned[0].AtGate || len(o.Learners()) >= o.learnerLimit() {
		return nil
	}
	next := planned[0]
	for _, m := range o.Learners() {
		// A learner that has not started compares the membership with its own
		// --initial-cluster: it must not grow by a member that is not in there.
		if !m.Joined() && (m.Pod == nil || m.Pod.InitialCluster[o.Names.PeerURL(next.Name)] == "") {
			return nil
		}
	}
	return o.add(next.Name)
}

// add adds a member: as a learner where etcd knows them. A member with a vote is
// added only while all others are well, for it counts before it has started.
func (o *Observation) add(name string) Step {
	v, ok := o.LowestVersion()
	learner := ok && v.HasLearners()
	if !learner && Count(o.Voters(), MemberState.Healthy) < len(o.Voters()) {
		return Wait{"for all members to be healthy before " + name + " is added"}
	}
	return AddMember{name, learner}
}

// awaitLearners holds back what follows while members join: the membership
// changes in one direction at a time.
func awaitLearners(o *Observation) Step {
	if learners := o.Learners(); len(learners) > 0 {
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

// removeOneMember shrinks the cluster by the member that is missed least.
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
			rank += 2 // another has joined in the place of one that does
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
	if !o.quorumWithout(victim) {
		return Wait{"for more healthy members before " + victim.PodName + " can be removed"}
	}
	if s := o.handOver(victim); s != nil {
		return s
	}
	why := fmt.Sprintf("the size is %d", o.Spec.Size)
	if o.Surge() {
		why = "another that follows the spec has joined in its place"
	}
	removal := victim.remove(false, why)
	removal.Last = len(o.Members) == 2
	return removal
}

// addMembers makes the pods of the members that are missing. The pods start
// together; the members are added one by one as their pods get ready for it. Where a pod
// has just found no node, the next pods are created one by one: if the last of several takes
// the only free node, all of them have to be recreated, again and again.
func addMembers(o *Observation) Step {
	missing := o.Spec.Size - len(o.Own()) - len(o.Planned())
	if missing <= 0 {
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

// seedPod is the pod of the first member of a new cluster.
func (o *Observation) seedPod(name string) manifest.MemberPod {
	return manifest.MemberPod{
		Name: name, Version: o.Spec.EffectiveVersion(), Seed: true, Source: o.Source,
		InitialCluster: etcd.InitialCluster{o.Names.PeerURL(name): name}, Volume: o.Spec.Persistent(),
	}
}

// followers are the pods of the members that follow a seed. They wait in check-dns until the
// seed serves and the operator adds them.
func (o *Observation) followers(seed string) []manifest.MemberPod {
	if !o.Gate {
		return nil
	}
	alone := *o
	alone.Members, alone.Pods = nil, slices.DeleteFunc(slices.Clone(o.Pods), func(p manifest.PodState) bool { return p.Name != seed })
	base := append([]string{seed}, o.plannedNames()...)
	return alone.joinPods(base, o.Spec.Size-len(base), o.Spec.EffectiveVersion())
}

// addresses are those of the members that serve or are about to, by host name.
func (o *Observation) addresses() map[string]string {
	addresses := map[string]string{}
	for _, p := range o.Pods {
		if p.IP != "" && !p.Deleting && !p.Finished && (p.Seed || p.Running) {
			addresses[o.Names.Host(p.Name)] = p.IP
		}
	}
	return addresses
}

// joinPods makes up n pods that join after the members and those in base, each
// after those before it. They must not start together: an etcd that joins asks
// all members for their versions first, and two that wait for each other's
// answer lose seven seconds (etcd's bootstrap timeout).
func (o *Observation) joinPods(base []string, n int, version string) []manifest.MemberPod {
	var pods []manifest.MemberPod
	addresses := o.addresses()
	for _, name := range o.NewNames[:max(0, min(n, len(o.NewNames)))] {
		base = append(base, name)
		pods = append(pods, manifest.MemberPod{
			Name: name, Version: version, InitialCluster: o.initialCluster(base), Addresses: addresses,
			Volume: o.Spec.Persistent(),
		})
	}
	return pods
}
