// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// dbSize is the size of the largest database that a member reports.
func (o *Observation) dbSize() int64 {
	var size int64
	for _, m := range o.Members {
		if m.Status != nil {
			size = max(size, m.Status.DBSize)
		}
	}
	return size
}

// memberNodes is the number of the members' nodes.
func (o *Observation) memberNodes() int {
	nodes := map[string]bool{}
	for _, m := range o.Own() {
		if m.Pod != nil && m.Pod.Node != "" {
			nodes[m.Pod.Node] = true
		}
	}
	return len(nodes)
}

// electionPatience is how long an available cluster may lack a leader before it counts as
// unavailable. Members elect one within one to two seconds after they have lost their leader
// (etcd's --election-timeout), and within milliseconds after an orderly transfer. Writers then
// wait a moment for the answer.
const electionPatience = 3 * time.Second

// Electing reports whether the members are probably electing a leader.
func (o *Observation) Electing() bool {
	return !o.LeaderlessSince.IsZero() && o.Now.Sub(o.LeaderlessSince) < electionPatience
}

// confirmPatience is how long most voters may confirm no reads before the cluster counts as
// unavailable: a single look can fall into a moment in which they are slow.
const confirmPatience = 2 * time.Second

// Unconfirmed reports whether writes fail although the leader serves reads.
func (o *Observation) Unconfirmed() bool {
	return !o.UnconfirmedSince.IsZero() && o.Now.Sub(o.UnconfirmedSince) >= confirmPatience
}

// Leader is the ID of the member that leads a quorum; 0 without one. The majority's word
// counts: a member that was cut off may still claim to lead for a moment.
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

// leadsInSilence reports whether a member leads, according to the others, and an answer of it to
// the operator was lost. If it is down, the others soon name another one.
func (o *Observation) leadsInSilence(m MemberState) bool {
	return !m.Healthy() && m.ID == o.Leader() && o.Now.Sub(m.DownSince) < silenceTolerated
}

// silenceTolerated is how long the operator waits for the answer of a member that leads.
const silenceTolerated = 30 * time.Second

// Alarms are the cluster's current alarms. The members agree on them as on their data, so the
// member that has applied most knows best.
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

// lastIndex is the highest index of the raft log that a member states.
func (o *Observation) lastIndex() (last uint64) {
	for _, m := range o.Members {
		if m.Status != nil {
			last = max(last, m.Status.RaftIndex)
		}
	}
	return last
}

// dataDiffers reports whether the alarm CORRUPT is up: members hold different data, and a person decides whose is
// right. etcd can blame the wrong member, such as all but a leader that is at fault.
func (o *Observation) dataDiffers() bool {
	return slices.ContainsFunc(o.Alarms(), func(a etcd.Alarm) bool { return a.Type == etcd.AlarmCorrupt })
}

// Healthy members commit: etcd answers status requests even if its disk hangs.
func (m MemberState) Healthy() bool {
	return m.Status != nil && m.Status.LeaderID != 0 && !m.Stalled
}

// DistrustsOperator reports whether the member does not answer because it and the operator do
// not accept each other's certificates. Its state is unknown then, and it may be healthy.
func (m MemberState) DistrustsOperator() bool {
	return etcd.IsTLSFailure(m.Err) || errors.Is(m.Err, ErrNoCertificate)
}

// Answers reports whether the member answers the operator.
func (m MemberState) Answers() bool { return m.Status != nil }

// leader reports whether the member leads. One whose disk hangs still claims to lead after
// another's election.
func (m MemberState) leader() bool {
	return m.Status != nil && m.Status.LeaderID == m.ID && !m.Stalled
}

// Foreign reports whether somebody else added the member. A foreign member counts for the
// quorum, and the operator leaves it alone.
func (m MemberState) Foreign() bool { return m.PodName == "" }

// Joined reports whether a member has started once.
func (m MemberState) Joined() bool { return m.Name != "" || m.Status != nil }

// Lost reports whether a member is permanently lost: nothing is left that could run it with
// its data.
func (m MemberState) Lost(now time.Time) bool {
	switch {
	case m.Foreign() || m.Status != nil || m.KeepsData():
		return false
	case m.Pod == nil || m.Pod.Finished:
		return true
	default:
		// A deleted pod gets its grace period: its etcd may still be transferring leadership.
		// On a lost node, the deletion never ends.
		return m.Pod.Deleting && (!m.Pod.Running || now.After(m.Pod.DeleteBy))
	}
}

// SilentFor returns how long an unhealthy member has had to return; 0 if it is healthy. After an outage
// of all, the nodes boot one by one, so the time without a quorum does not count. A member without data
// has nothing to return with.
func (m MemberState) SilentFor(now time.Time) time.Duration {
	switch {
	case m.DownSince.IsZero():
		return 0
	case m.Pod != nil && m.Pod.Dataless:
		return now.Sub(m.DownSince)
	default:
		return m.Awaited
	}
}

// Own returns the members that the operator has made.
func (o *Observation) Own() []MemberState {
	return slices.DeleteFunc(slices.Clone(o.Members), MemberState.Foreign)
}

// Voters returns the members with a vote.
func (o *Observation) Voters() []MemberState {
	return slices.DeleteFunc(slices.Clone(o.Members), func(m MemberState) bool { return m.Learner })
}

// Learners returns the members without a vote.
func (o *Observation) Learners() []MemberState {
	return slices.DeleteFunc(slices.Clone(o.Members), func(m MemberState) bool { return !m.Learner || m.Foreign() })
}

// Count returns the number of members for which a condition holds.
func Count(members []MemberState, is func(MemberState) bool) int {
	n := 0
	for _, m := range members {
		if is(m) {
			n++
		}
	}
	return n
}

// IsMember reports whether a pod belongs to a member.
func (o *Observation) IsMember(pod string) bool {
	return slices.ContainsFunc(o.Members, func(m MemberState) bool { return m.PodName == pod })
}

// Unreached reports whether a member that does not answer the operator takes part in the
// quorum nevertheless: it answers its node's kubelet. A network policy between the operator
// and the members has this effect.
func (m MemberState) Unreached() bool {
	if m.Status != nil || m.Pod == nil || !m.Pod.Ready || m.Pod.Deleting {
		return false
	}
	// In earlier versions, ready only means that a port is open.
	v, err := etcd.ParseVersion(m.Pod.Version)
	return err == nil && (v.HasMetricsListener() || m.Pod.Legacy)
}

// quorumWithout reports whether the healthy voters except m are a quorum of the membership
// without m.
func (o *Observation) quorumWithout(m MemberState) bool {
	return o.quorumOfOthers(m, MemberState.Healthy)
}

// quorumOfOthers reports the same of the voters that count.
func (o *Observation) quorumOfOthers(m MemberState, counts func(MemberState) bool) bool {
	others := slices.DeleteFunc(o.Voters(), func(v MemberState) bool { return v.ID == m.ID })
	return Count(others, counts) >= etcd.Quorum(len(others))
}

// steady reports whether a member is healthy, and not about to stop.
func steady(m MemberState) bool { return m.Healthy() && !stopping(m) }

// stopping reports whether a member still serves, and is about to stop: its pod is being deleted, or gets
// another image.
func stopping(m MemberState) bool {
	return m.Healthy() && m.Pod != nil && (m.Pod.Deleting || m.Pod.Restarting && !showsRestart(m))
}

// awaited says what the operator waits for while a member that still serves is about to stop. before says what
// has to wait.
func (o *Observation) awaited(m MemberState, before string) string {
	if !m.Pod.Deleting {
		return "for " + m.PodName + " to restart before " + before
	}
	why := "for " + m.PodName + " to return or to be replaced before " + before + ": its pod is being deleted"
	if m.Pod.LostNode(o.Now) {
		why += ", and its node does not end it: reconnect the node to Kubernetes, or turn the machine off and delete its Node object"
	}
	return why
}

// NobodyAnswers reports whether there may be members, and none of them answers: a loaded
// machine is enough for that. It does not mean that a change has failed.
func (o *Observation) NobodyAnswers() bool {
	return o.Status.Phase == api.ClusterPhaseRunning && len(o.Members) == 0 && len(o.Pods)+len(o.Volumes) > 0
}

// LostData names the members on record whose data is gone: with their pod, or from their disk.
func (o *Observation) LostData() []string {
	if o.Record == nil {
		return nil
	}
	var lost []string
	for _, m := range o.Record.Members {
		v, p := o.Volume(m.Name), o.Pod(m.Name)
		switch {
		case m.Name == "", o.OfOthers(m.Name, m.ID):
		case p != nil && p.Dataless, (v == nil || v.Deleting) && (p == nil || p.Finished || p.Claimed && !p.Started):
			lost = append(lost, m.Name)
		}
	}
	return lost
}

// OfOthers reports whether somebody else runs a member that was known before. The operator has never had a pod
// of it, and does not know whether its data is gone.
func (o *Observation) OfOthers(name, id string) bool {
	if o.Status.Import != nil && o.Status.Import.Has(id) {
		return true
	}
	if i := slices.IndexFunc(o.Members, func(m MemberState) bool { return etcd.FormatID(m.ID) == id }); i >= 0 {
		return o.Members[i].Foreign()
	}
	return o.Pod(name) == nil && o.Volume(name) == nil && !strings.HasPrefix(name, o.Names.Cluster+"-")
}

// HasMember reports whether the membership has a member that passes a check.
func (o *Observation) HasMember(check func(MemberState) bool) bool {
	return slices.ContainsFunc(o.Members, check)
}

// KeepsData reports whether the member's data survives its pod. A learner that has never
// started has none.
func (m MemberState) KeepsData() bool {
	return m.Volume != nil && !m.Volume.Deleting && (!m.Learner || m.Joined())
}
