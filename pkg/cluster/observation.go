// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// observation is one look at the world: all that a plan may depend on.
type observation struct {
	now    time.Time
	names  names
	spec   api.ClusterSpec
	status api.ClusterStatus // as last written
	// invalid says why the spec can't be followed at all; empty if it can.
	invalid string
	// ending is true once the EtcdCluster is being deleted.
	ending bool
	// source is the backup that the first member is to start on; nil: it starts
	// empty. Only a bootstrap depends on it.
	source *api.SeedBackup
	// sourceUnreadable says why nobody knows what the first member is to start on;
	// empty if that is known.
	sourceUnreadable string
	// newName makes up names for new members.
	newName func() string
	// gate is true where check-dns also waits for membership, so that pods of
	// members may be made before the members are added.
	gate bool

	// clusterVersion is what the members have agreed on; asked for only while
	// the version is to change, and zero if nobody answered.
	clusterVersion etcd.Version
	// logTarget is the raft index at which all members have taken a snapshot of
	// their raft state since the upgrade asked for it; 0 before it does.
	logTarget uint64

	certificates certificates
	// blind says why the operator can't look into the cluster though members run:
	// it and the members don't accept each other's certificates. "" if it can.
	blind string
	// template is what members are to be made by; empty parts are not known.
	template template
	// updateRefused says why pods can't be made by the template; empty if they can.
	updateRefused string

	peerService, clientService belonging
	// formerServices are those of the cluster under names that it no longer uses.
	formerServices []belonging
	budget         budgetState
	refused        refusedPods
	pods           []podState // sorted by name
	// strangers are pods with this cluster's labels that another object owns,
	// such as an EtcdCluster of the same name that was just deleted.
	strangers int
	volumes   []volumeState // sorted by name

	// mislabels are the images that hold another version of etcd than their tag says,
	// with that version.
	mislabels map[string]string

	// quorum is true when the members were listed by a linearizable read: the
	// cluster has a leader and a quorum, and the list is what it agreed on.
	quorum bool
	// leaderlessSince is since when enough members answer for a quorum, and none
	// leads to a leader; zero if that isn't so.
	leaderlessSince time.Time
	// standstill says what the operator has waited for too long; "" if nothing.
	standstill string
	// liftPutOff is true for a while after alarms could not be lifted.
	liftPutOff bool
	// record is what was on record or seen last; nil: nothing. seen is what a quorum
	// says now. accepted is the record that a person overrules.
	record   *api.ClusterRecord
	seen     testimony
	accepted string
	// members is the membership joined with pods and health, sorted by ID.
	// Without a quorum it is what the most advanced member remembers, or empty.
	members []memberState
}

// podState is what matters of one pod of the cluster.
type podState struct {
	name    string
	uid     types.UID
	ip      string
	node    string
	image   string // of etcd, as last asked for
	version string // of etcd, by the tag of that image
	// admitted is the image that admission has made of it. Nothing is read from it
	// but whether it changes: the kubelet restarts etcd if it does.
	admitted string
	// previous is the version that ran before the last change, where known.
	previous string
	created  time.Time

	template template // that it was made by; empty parts are not on record
	// metadataOutdated is true when its labels or annotations are not the spec's.
	metadataOutdated bool

	// legacy is true for a pod as v0.9.4 makes them: etcd is not started again
	// after it has ended, and probed by commands that newer images don't hold. A
	// change of its image would be the loss of its data.
	legacy bool

	seed bool // starts a new cluster
	// source identifies the backup that a seed starts on; "" for one that starts
	// empty, and for other pods.
	source string
	// preparing is the init container that runs, or is the next to run; "" when all
	// have ended well.
	preparing      string
	initialCluster etcd.InitialCluster
	manyLearners   bool // runs with the operator's limit on learners

	// guarded is true where check-dns heeds the note that the member has served;
	// noted is true where that is on the pod, notePutOff while it is not tried.
	guarded, noted, notePutOff bool

	scheduled bool
	atGate    bool // its init container runs, or has ended well
	started   bool // etcd has run in it at least once
	running   bool // etcd runs now
	ready     bool
	deleting  bool
	// deleteBy is when a deleted pod should be gone at the latest.
	deleteBy time.Time
	finished bool // Failed or Succeeded: it will not run again
	// problem says why etcd doesn't run in it, in words for a person; empty if it
	// runs, or if it is just on its way. Its kind stays the same where the words change.
	problem, problemKind string
	// badImage is true when etcd's image can't be had, crashing when etcd ends
	// soon after each start.
	badImage, crashing bool
	restarts           int32
	// crowded is how many nodes the scheduler keeps the pod from because of another pod
	// there, and of nothing else.
	crowded int
	// dataless is true when it ended because the data of its member is gone.
	dataless bool
	// offVolume is true when no node that the pod may run on has access to its volume.
	offVolume bool
}

// trouble is the problem of a pod that is given up.
func (p podState) trouble() string {
	if p.problem == "" {
		return "Kubernetes gives no reason, see the pod's events and logs"
	}
	return p.problem
}

// remove is the step that deletes the pod.
func (p podState) remove(why string) step { return deletePod{name: p.name, uid: p.uid, why: why} }

// removeSeed deletes the pod of a seed that has not served, as far as is on record.
func (p podState) removeSeed(why string) step {
	return deletePod{name: p.name, uid: p.uid, creating: true, why: why}
}

// memberState is a member with what is known of it.
type memberState struct {
	etcd.Member
	// name is the name of its pod, "" for a member that is not of the operator's
	// making.
	name   string
	pod    *podState
	volume *volumeState
	// status is nil when the member did not answer.
	status *etcd.Status
	err    error
	// stalled is true for a voter that answers, and confirms no read though the others
	// do: its disk hangs, or it is cut off from them.
	stalled bool
	// downSince is when it was first seen without an answer or a leader; zero if
	// it is healthy.
	downSince time.Time
	// received is when it was last seen to receive a copy of the database; zero: never.
	received time.Time
	// copyUnseen is true where that can't be seen.
	copyUnseen bool
}

// healthy members commit: etcd answers for its state also when its disk hangs.
func (m memberState) healthy() bool {
	return m.status != nil && m.status.LeaderID != 0 && !m.stalled
}

// unheard tells whether the member doesn't answer because it and the operator
// don't accept each other's certificates: how it is isn't known then, and it may
// be well.
func (m memberState) unheard() bool {
	return etcd.IsTLSFailure(m.err) || errors.Is(m.err, errNoCertificate)
}

func (m memberState) answers() bool { return m.status != nil }

// leader reports whether the member leads. One whose disk hangs goes on saying so when
// another has been elected.
func (m memberState) leader() bool {
	return m.status != nil && m.status.LeaderID == m.ID && !m.stalled
}

// foreign members were added by somebody else. They count for the quorum and
// are left alone.
func (m memberState) foreign() bool { return m.name == "" }

// joined tells whether a member has started once.
func (m memberState) joined() bool { return m.Name != "" || m.status != nil }

// lost tells whether a member is gone for good: nothing is left that could run
// it with its data.
func (m memberState) lost(now time.Time) bool {
	switch {
	case m.foreign() || m.status != nil || m.keepsData():
		return false
	case m.pod == nil || m.pod.finished:
		return true
	default:
		// A pod that is being deleted is given its time: its etcd may still be
		// handing over. On a node that is gone the deletion never ends.
		return m.pod.deleting && (!m.pod.running || now.After(m.pod.deleteBy))
	}
}

// own are the members of the operator's making.
func (o *observation) own() []memberState {
	return slices.DeleteFunc(slices.Clone(o.members), memberState.foreign)
}

func (o *observation) voters() []memberState {
	return slices.DeleteFunc(slices.Clone(o.members), func(m memberState) bool { return m.Learner })
}

func (o *observation) learners() []memberState {
	return slices.DeleteFunc(slices.Clone(o.members), func(m memberState) bool { return !m.Learner || m.foreign() })
}

func count(members []memberState, is func(memberState) bool) int {
	n := 0
	for _, m := range members {
		if is(m) {
			n++
		}
	}
	return n
}

func (o *observation) pod(name string) *podState {
	for i := range o.pods {
		if o.pods[i].name == name {
			return &o.pods[i]
		}
	}
	return nil
}

func (o *observation) isMember(pod string) bool {
	return slices.ContainsFunc(o.members, func(m memberState) bool { return m.name == pod })
}

// image is that of a version of etcd.
func (o *observation) image(version string) string {
	return image(&o.spec, version)
}

// planned are the pods made for members that are not added yet, in the order in
// which they can join.
func (o *observation) planned() []podState {
	var planned []podState
	for _, p := range o.pods {
		if !o.isMember(p.name) && !p.seed && !p.started && !p.deleting && !p.finished {
			planned = append(planned, p)
		}
	}
	slices.SortStableFunc(planned, func(a, b podState) int { return len(a.initialCluster) - len(b.initialCluster) })
	return planned
}

// plannedNames are the names of the planned pods, in the same order.
func (o *observation) plannedNames() []string {
	var names []string
	for _, p := range o.planned() {
		names = append(names, p.name)
	}
	return names
}

// lowestVersion is the oldest etcd that runs in the cluster, by the members' own
// word. A member that doesn't answer may be as old as the cluster was when all
// last did, which is on record. ok is false when nothing is known.
func (o *observation) lowestVersion() (lowest etcd.Version, ok bool) {
	for _, m := range o.members {
		version := o.status.CurrentVersion
		switch {
		case m.foreign():
			continue // it is not asked
		case m.status != nil:
			version = m.status.Version
		case !m.joined():
			continue
		}
		v, err := etcd.ParseVersion(version)
		if err == nil && (!ok || v.LT(lowest.Version)) {
			lowest, ok = v, true
		}
	}
	return lowest, ok
}
