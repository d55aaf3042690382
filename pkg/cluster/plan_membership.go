// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// joinDeadline is how long a new member may take from the making of its pod
	// to its first answer. Then it is given up and another is tried, perhaps on
	// another node.
	joinDeadline = 5 * time.Minute

	// wedgeDeadline is how long a member whose pod is there may not answer
	// before it is replaced. It is long because a restart, a node's reboot or a
	// large database's start are cheaper than copying the data again.
	wedgeDeadline = 10 * time.Minute

	// holdUpDeadline is how long pods that could join may wait for one that was to
	// join before them and finds no node.
	holdUpDeadline = 20 * time.Second

	// manyLearners is the limit on learners that the operator sets where etcd
	// has one. All members must agree on it: each of them checks it when a
	// change of the membership is applied.
	manyLearners = 6

	// smallDatabase is up to which size several learners may copy the database
	// from the leader at the same time.
	smallDatabase = 128 << 20

	// podGone is the reason that is checked once more against the API server
	// before a member is removed for it.
	podGone = "its pod is gone"
)

// replaceLostMember removes a member that will not come back, so that another
// can take its place. A learner has no vote and can always go; a voter goes if
// the others keep a quorum without it.
func replaceLostMember(o *observation) step {
	for _, m := range o.own() {
		switch {
		case !m.lost(o.now):
		case m.Learner && m.pod == nil && !m.joined() && !o.gate:
			// makeAddedMembersPod comes to it.
		case m.Learner:
			return m.remove(false, podGone)
		case o.quorumWithout(m):
			return m.remove(true, podGone)
		}
	}
	return nil
}

// replaceWedgedMember removes a member whose pod is there but that doesn't
// answer for long. A pod without a working image is left for a person: the next
// one would have the same image.
func replaceWedgedMember(o *observation) step {
	// A pod that can't start as the first that follows an edit is the edit's
	// doing: the next one would not start either.
	edited := slices.ContainsFunc(o.own(), o.behindTemplate)
	for _, m := range o.own() {
		if m.pod == nil || m.unheard() || m.unreached() || m.downSince.IsZero() || o.now.Sub(m.downSince) <= wedgeDeadline || !o.quorumWithout(m) {
			continue
		}
		switch {
		case m.pod.lostNode(o.now) || m.pod.offVolume || m.pod.dataless:
			// Whatever its image and its template are, nothing can start it there.
		case edited && !m.pod.started && !o.podOutdated(*m.pod), m.pod.badImage, m.pod.version != o.joinVersion():
			continue
		}
		if m.stalled {
			return m.remove(true, "it answers, but has confirmed no reads for "+wedgeDeadline.String())
		}
		return m.remove(true, "it has not answered for "+wedgeDeadline.String())
	}
	return nil
}

// unreached reports whether a member that does not answer the operator takes part in the
// quorum nevertheless: the kubelet asks it on its own node, and is told so. A network
// policy between the operator and the members is enough for that.
func (m memberState) unreached() bool {
	if m.status != nil || m.pod == nil || !m.pod.ready || m.pod.deleting {
		return false
	}
	// Before, ready means no more than that a port is open.
	v, err := etcd.ParseVersion(m.pod.version)
	return err == nil && (v.HasMetricsListener() || m.pod.legacy)
}

// lostNode reports whether the pod's deletion takes longer than a node that is there
// takes for it.
func (p podState) lostNode(now time.Time) bool { return p.deleting && now.After(p.deleteBy) }

// quorumWithout tells whether the healthy voters but m are a quorum of the
// membership without m.
func (o *observation) quorumWithout(m memberState) bool {
	others := slices.DeleteFunc(o.voters(), func(v memberState) bool { return v.ID == m.ID })
	return len(others) > 0 && count(others, memberState.healthy) >= etcd.Quorum(len(others))
}

// remove is the step that removes a member.
func (m memberState) remove(dead bool, why string) removeMember {
	s := removeMember{id: m.ID, name: m.name, volume: m.volume != nil, dead: dead, why: why}
	if m.pod != nil {
		s.pod = m.pod.uid
	}
	return s
}

// dropSurplusLearner takes back a learner that the size no longer asks for,
// rather than let it copy the database first.
func dropSurplusLearner(o *observation) step {
	if learners := o.learners(); len(learners) > 0 && len(o.own()) > o.size() {
		last := learners[len(learners)-1]
		return last.remove(false, fmt.Sprintf("the size is %d", o.spec.Size))
	}
	return nil
}

// promoteLearner gives its vote to the learner that is least behind. etcd itself
// refuses one that isn't in sync. Nobody votes before it is noted that it has data.
func promoteLearner(o *observation) step {
	var ready []memberState
	for _, m := range o.learners() {
		if m.healthy() && (m.pod == nil || !m.pod.guarded || m.pod.noted) {
			ready = append(ready, m)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	best := slices.MaxFunc(ready, func(a, b memberState) int { return cmp.Compare(a.status.RaftApplied, b.status.RaftApplied) })
	return promoteMember{best.ID, best.name}
}

// dropStuckLearner gives up a learner that can't start any more, or takes too
// long. It has no vote: nothing is lost with it.
func dropStuckLearner(o *observation) step {
	for _, m := range o.learners() {
		if m.healthy() || m.pod == nil || m.unheard() {
			continue
		}
		var why string
		switch {
		case !m.joined() && !o.canJoin(m.pod.initialCluster) && !m.copies(o.now):
			why = "the membership changed before it started"
		case !m.joined() && !m.pod.started && m.pod.image != o.image(o.joinVersion()):
			why = "the image for new members is now " + o.image(o.joinVersion())
		case !m.joined() && !m.pod.started && o.behindTemplate(m):
			why = "the spec has changed since its pod was made"
		case o.overdue(m):
			why = fmt.Sprintf("it did not start within %s: %s", joinDeadline, m.pod.trouble())
		default:
			continue
		}
		return m.remove(false, why)
	}
	return nil
}

// makeAddedMembersPod makes the pod of a member that was added first, which is
// the order where check-dns can't wait for the membership (spec.pod.busyboxImage).
func makeAddedMembersPod(o *observation) step {
	if o.gate {
		return nil
	}
	for _, m := range o.own() {
		if m.pod == nil && !m.joined() {
			return createPods{
				pods: []newPod{{name: m.name, version: o.joinVersion(), initialCluster: o.initialCluster(nil), volume: o.spec.Persistent()}},
				why:  "the member was added",
			}
		}
	}
	return nil
}

// awaitJoiningVoter waits for a member that was added with a vote, because its
// etcd has no learners: until it has started, the quorum has nothing to spare.
func awaitJoiningVoter(o *observation) step {
	for _, m := range o.voters() {
		if !m.joined() && !m.foreign() && m.pod != nil {
			if o.now.Sub(m.pod.created) > joinDeadline && o.quorumWithout(m) {
				return m.remove(true, fmt.Sprintf("it did not start within %s: %s", joinDeadline, m.pod.trouble()))
			}
			return wait{"for " + m.name + " to join"}
		}
	}
	return nil
}

// canJoin tells whether a member that was started with this --initial-cluster
// can still find exactly this membership: all of today's members, and besides
// them only members whose pods wait to join.
func (o *observation) canJoin(ic etcd.InitialCluster) bool {
	for _, m := range o.members {
		for _, u := range m.PeerURLs {
			if _, ok := ic[u]; !ok {
				return false
			}
		}
	}
	for peerURL, name := range ic {
		isMember := slices.ContainsFunc(o.members, func(m memberState) bool { return slices.Contains(m.PeerURLs, peerURL) })
		if !isMember && !slices.ContainsFunc(o.planned(), func(p podState) bool { return p.name == name }) {
			return false
		}
	}
	return true
}

// initialCluster is the membership with further members.
func (o *observation) initialCluster(further []string) etcd.InitialCluster {
	ic := etcd.InitialCluster{}
	for _, m := range o.members {
		name := m.Name
		if name == "" {
			name = m.name
		}
		if name == "" {
			name = etcd.FormatID(m.ID)
		}
		for _, u := range m.PeerURLs {
			ic[u] = name
		}
	}
	for _, name := range further {
		ic[o.names.peerURL(name)] = name
	}
	return ic
}

// joinPlanned adds the next member whose pod was made ahead and waits for it. It
// comes before the promotion of those that were added before: with each vote that
// is new, etcd takes no further member for five seconds (its HealthInterval).
func joinPlanned(o *observation) step {
	planned := o.planned()
	if len(planned) == 0 || !planned[0].atGate || len(o.learners()) >= o.learnerLimit() {
		return nil
	}
	next := planned[0]
	for _, m := range o.learners() {
		// A learner that has not started compares the membership with its own
		// --initial-cluster: it must not grow by a member that is not in there.
		if !m.joined() && (m.pod == nil || m.pod.initialCluster[o.names.peerURL(next.name)] == "") {
			return nil
		}
	}
	return o.add(next.name)
}

// add adds a member: as a learner where etcd knows them. A member with a vote is
// added only while all others are well, for it counts before it has started.
func (o *observation) add(name string) step {
	v, ok := o.lowestVersion()
	learner := ok && v.HasLearners()
	if !learner && count(o.voters(), memberState.healthy) < len(o.voters()) {
		return wait{"for all members to be healthy before " + name + " is added"}
	}
	return addMember{name, learner}
}

// awaitLearners holds back what follows while members join: the membership
// changes in one direction at a time.
func awaitLearners(o *observation) step {
	if learners := o.learners(); len(learners) > 0 {
		return wait{"for " + learners[0].name + " to join"}
	}
	return nil
}

// learnerLimit is how many learners there may be at a time.
func (o *observation) learnerLimit() int {
	v, ok := o.lowestVersion()
	if !ok || !v.HasMaxLearners() {
		return 1
	}
	for _, m := range o.members {
		if m.pod == nil || !m.pod.manyLearners || m.status != nil && m.status.DBSize > smallDatabase {
			return 1
		}
	}
	return manyLearners
}

// removeOneMember shrinks the cluster by the member that is missed least.
func removeOneMember(o *observation) step {
	own := o.own()
	if len(own) <= o.spec.Size {
		return nil
	}
	crowd := map[string]int{}
	for _, m := range own {
		if m.pod != nil {
			crowd[m.pod.node]++
		}
	}
	rank := func(m memberState) int {
		rank := 0
		if !m.healthy() {
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
	node := func(m memberState) string {
		if m.pod == nil {
			return ""
		}
		return m.pod.node
	}
	victim := slices.MinFunc(own, func(a, b memberState) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			-cmp.Compare(crowd[node(a)], crowd[node(b)]), // keep the spread over nodes
			-cmp.Compare(a.name, b.name),
		)
	})
	if !o.quorumWithout(victim) {
		return wait{"for more healthy members before " + victim.name + " can be removed"}
	}
	if s := o.handOver(victim); s != nil {
		return s
	}
	why := fmt.Sprintf("the size is %d", o.spec.Size)
	if o.surge() {
		why = "another that follows the spec has joined in its place"
	}
	removal := victim.remove(false, why)
	removal.last = len(o.members) == 2
	return removal
}

// addMembers makes the pods of the members that are missing. The pods start
// together; the members are added one by one as their pods get ready for it.
func addMembers(o *observation) step {
	missing := o.spec.Size - len(o.own()) - len(o.planned())
	if missing <= 0 {
		return nil
	}
	why := fmt.Sprintf("the size is %d", o.spec.Size)
	if !o.gate {
		return o.add(o.newName())
	}
	return createPods{pods: o.joinPods(o.plannedNames(), missing, o.joinVersion()), why: why}
}

// bootstrapPods are the pods of a new cluster: the seed, and those of further
// members, which wait in check-dns until the seed serves and they are added.
func bootstrapPods(o *observation, seed string) []newPod {
	version := o.spec.EffectiveVersion()
	alone := *o
	alone.members, alone.pods = nil, nil
	pods := []newPod{{name: seed, version: version, seed: true, source: o.source, initialCluster: alone.initialCluster([]string{seed}), volume: o.spec.Persistent()}}
	if !o.gate {
		return pods
	}
	base := append([]string{seed}, o.plannedNames()...)
	return append(pods, alone.joinPods(base, o.spec.Size-len(base), version)...)
}

// joinPods makes up n pods that join after the members and those in base, each
// after those before it. They must not start together: an etcd that joins asks
// all members for their versions first, and two that wait for each other's
// answer lose seven seconds (etcd's bootstrap timeout).
func (o *observation) joinPods(base []string, n int, version string) []newPod {
	var pods []newPod
	for range n {
		name := o.newName()
		base = append(base, name)
		pods = append(pods, newPod{name: name, version: version, initialCluster: o.initialCluster(base), volume: o.spec.Persistent()})
	}
	return pods
}
