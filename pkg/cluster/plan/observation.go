// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certcheck"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Observation is one view of the world: everything that a plan may depend on.
type Observation struct {
	Now   time.Time
	Names manifest.Names
	// Created is when the EtcdCluster was created; zero if unknown.
	Created time.Time
	Spec    api.ClusterSpec
	Status  api.ClusterStatus // as last written
	// Invalid says why the operator can't follow the spec at all; empty if it can.
	Invalid string
	// Tolerated says what is refused in the user's spec while the cluster runs on without it;
	// empty if nothing is. Spec is the spec without it.
	Tolerated string
	// Ending is true once somebody has deleted the EtcdCluster.
	Ending bool
	// Source is the backup that the first member starts on; nil: it starts empty. Only a
	// bootstrap depends on it.
	Source *api.SeedBackup
	// Import is what the operator knows of an etcd that the cluster takes over.
	Import Import
	// SourceUnreadable says why the first member's backup is unknown; empty if it is known.
	SourceUnreadable string
	// NewNames are names for new members, of which a step takes the first ones.
	NewNames []string
	// Gate is true if check-dns also waits for membership, so that the operator may create
	// pods before it adds their members.
	Gate bool

	// ClusterVersion is the version that the members have agreed on. The operator asks for it
	// only while the version changes; zero if nobody answered.
	ClusterVersion etcd.Version
	// LogTarget is the raft index at which all members have taken a snapshot of their raft
	// state since the upgrade needed it; 0 before.
	LogTarget uint64
	// LogCount is the largest snapshot count of a member for which LogTarget holds.
	LogCount uint64

	Certificates certcheck.Certificates
	// Blind says why the operator can't query running members: it and the members do not
	// accept each other's certificates. "" if it can.
	Blind string
	// LoginRefused says why the members do not answer although they run: they ask for a user,
	// and the operator has none that they accept.
	LoginRefused string
	// Auth is what the operator knows of etcd's authentication.
	Auth Auth
	// Template is the current template of members; empty parts are unknown.
	Template manifest.Template
	// UpdateRefused says why the API server refuses the template's pods; empty if it does not.
	UpdateRefused string
	// UpdatePutOff is true while the operator delays another attempt at such a pod.
	UpdatePutOff bool

	// WriteUndone says which annotation of the operator admission drops, or which deletion Kubernetes
	// refuses; empty if none. ImageRefused says which change of an image it refuses.
	WriteUndone, ImageRefused string

	PeerService, ClientService OwnedObject
	// FormerServices are the cluster's Services under names that it no longer uses.
	FormerServices []OwnedObject
	// Bridges are Services of others that lead to the members, by name.
	Bridges []Bridge
	Budget  BudgetState
	Refused RefusedPods
	Pods    []manifest.PodState // sorted by name
	// PodsOfOthers are pods with this cluster's labels that another object owns, such as an
	// EtcdCluster of the same name that was just deleted.
	PodsOfOthers int
	// ReadyPodsOfOthers are the names of those that are ready. The client Service leads to them, and the
	// PodDisruptionBudget counts them.
	ReadyPodsOfOthers []string
	Volumes           []manifest.VolumeState // sorted by name

	// Mislabels are the images that hold another version of etcd than their tag says, with
	// that version.
	Mislabels map[string]string

	// Quorum is true if the membership is from a linearizable read: the cluster has a leader
	// and a quorum, and has agreed on the membership.
	Quorum bool
	// QuorumSince is since when each observation has seen a quorum; zero without one. A late
	// observation restarts it.
	QuorumSince time.Time
	// QuorumReturned is when the quorum returned after an outage, as far as the operator has
	// seen one; zero otherwise.
	QuorumReturned time.Time
	// LeaderlessSince is since when enough members answer for a quorum without a leader; zero
	// otherwise.
	LeaderlessSince time.Time
	// UnconfirmedSince is since when so many voters confirm no reads that the others are no
	// majority, and no entry has been committed; zero otherwise.
	UnconfirmedSince time.Time
	// Standstill is what the operator has waited for too long, as the detail of that Reason;
	// "" if nothing.
	Standstill string
	// VotesUndone is how often within an hour the operator has taken a member out of an imported etcd
	// because somebody else had given it a vote.
	VotesUndone int
	// JoinSingly is true for a while after a pod without a node held up later ones.
	JoinSingly bool
	// StandstillSince is since when no step has succeeded; zero if nothing is to be done.
	StandstillSince time.Time
	// LiftPutOff is true for a while after a failure to disarm alarms.
	LiftPutOff bool
	// Record is the recorded or last seen state; nil: nothing. Seen is what a quorum says now.
	// Accepted is the record that a person overrules.
	Record   *api.ClusterRecord
	Seen     Testimony
	Accepted string
	// StaysSince is since when each observation has shown a member that the record marks as
	// removing, by its ID, while all voters were healthy and no step removed it.
	StaysSince map[string]time.Time
	// Recovery is what is known for a way out of a lost quorum.
	Recovery Recovery
	// StatedLiteralTags is true if the EtcdCluster has an annotation that tags of images have
	// no leading v.
	StatedLiteralTags bool
	// StatedOrigin is the version with which the cluster began, as a person says; "" if nobody
	// does.
	StatedOrigin string
	// Members is the membership joined with pods and health, sorted by ID. Without a quorum it
	// is the memory of the most advanced member, or empty.
	Members []MemberState
}

// MemberState is the known state of a member.
type MemberState struct {
	etcd.Member
	// PodName is the name of its pod, "" for a member that the operator did not make.
	PodName string
	Pod     *manifest.PodState
	Volume  *manifest.VolumeState
	// Status is nil if the member did not answer.
	Status *etcd.Status
	Err    error
	// Stalled is true for a voter that answers, and confirms no read while the others do. Its
	// disk hangs, or it has no connection to them.
	Stalled bool
	// DownSince is when the operator first saw it without an answer or a leader; zero if it is
	// healthy.
	DownSince time.Time
	// Awaited is for how long of that time the operator has seen a quorum, or a hung disk, which hangs
	// without a quorum too. The time in which members refuse each other's certificates does not count.
	Awaited time.Duration
	// Received is when it was last seen to receive a copy of the database; zero: never.
	Received time.Time
	// CopyUnseen is true if such a copy would be invisible.
	CopyUnseen bool
}

// newName returns the name of the next member; "" if the observation has none.
func (o *Observation) newName() string {
	if len(o.NewNames) == 0 {
		return ""
	}
	return o.NewNames[0]
}

// OwnedObject is an object of a cluster other than its pods: a Service or the
// PodDisruptionBudget.
type OwnedObject struct {
	Name string
	UID  types.UID
	// Owned is true if the object exists and belongs to this EtcdCluster.
	Owned bool
	// Leaving is true while it is being deleted. A finalizer may delay that. The operator can
	// do nothing until it is gone, and its end starts a pass.
	Leaving bool
	// Edited says how it differs from the operator's; empty if it does not.
	Edited string
	// Remake is true if only its deletion and recreation can correct it.
	Remake bool
	// PutOff is true while the operator delays writes to it.
	PutOff bool
	// Refused says why the API server refuses the last write of it, or that the name is taken; ""
	// if neither.
	Refused string
	// Taken is true while somebody else's object has its name. The operator retries after a
	// while.
	Taken bool
}

// Ok reports whether the object exists and is usable.
func (b OwnedObject) Ok() bool { return b.Owned && !b.Leaving }

// ErrNoCertificate is why the operator does not ask a member.
var ErrNoCertificate = errors.New("the operator has no certificate to ask it with")

// ErrOtherMember means that another pod has the address by now.
var ErrOtherMember = errors.New("another member answers at its address")

// BudgetState is the observed PodDisruptionBudget of the cluster.
type BudgetState struct {
	OwnedObject
	MinAvailable int // 0 if there is none
	// Written is the number that was just written. The operator does not write it again at
	// once if somebody undoes it; 0 after that pause.
	Written int
}

// RefusedPods is the API server's last refusal of a pod. For example, a quota is used up, a
// policy forbids the pod, or the spec names an object that does not exist.
type RefusedPods struct {
	Why string
	// Generation is that of the pod's spec: the operator tries another one at once.
	Generation int64
	Until      time.Time // no attempt before
}

// Testimony is the data of the member through which a quorum answered, at that answer or
// later. Zero values are unknown.
type Testimony struct {
	ClusterID, Index uint64
	Revision         int64
}
