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

// Observation is one look at the world: all that a plan may depend on.
type Observation struct {
	Now    time.Time
	Names  manifest.Names
	Spec   api.ClusterSpec
	Status api.ClusterStatus // as last written
	// Invalid says why the spec can't be followed at all; empty if it can.
	Invalid string
	// Ending is true once the EtcdCluster is being deleted.
	Ending bool
	// Source is the backup that the first member is to start on; nil: it starts
	// empty. Only a bootstrap depends on it.
	Source *api.SeedBackup
	// SourceUnreadable says why nobody knows what the first member is to start on;
	// empty if that is known.
	SourceUnreadable string
	// NewNames are names for new members, of which a step takes the first ones.
	NewNames []string
	// Gate is true where check-dns also waits for membership, so that pods of
	// members may be made before the members are added.
	Gate bool

	// ClusterVersion is what the members have agreed on; asked for only while
	// the version is to change, and zero if nobody answered.
	ClusterVersion etcd.Version
	// LogTarget is the raft index at which all members have taken a snapshot of
	// their raft state since the upgrade asked for it; 0 before it does.
	LogTarget uint64

	Certificates certcheck.Certificates
	// Blind says why the operator can't look into the cluster though members run:
	// it and the members don't accept each other's certificates. "" if it can.
	Blind string
	// Template is what members are to be made by; empty parts are not known.
	Template manifest.Template
	// UpdateRefused says why pods can't be made by the template; empty if they can.
	UpdateRefused string

	PeerService, ClientService OwnedObject
	// FormerServices are those of the cluster under names that it no longer uses.
	FormerServices []OwnedObject
	Budget         BudgetState
	Refused        RefusedPods
	Pods           []manifest.PodState // sorted by name
	// PodsOfOthers are pods with this cluster's labels that another object owns,
	// such as an EtcdCluster of the same name that was just deleted.
	PodsOfOthers int
	Volumes      []manifest.VolumeState // sorted by name

	// Mislabels are the images that hold another version of etcd than their tag says,
	// with that version.
	Mislabels map[string]string

	// Quorum is true when the members were listed by a linearizable read: the
	// cluster has a leader and a quorum, and the list is what it agreed on.
	Quorum bool
	// QuorumSince is since when each look has seen a quorum; zero without one. A
	// look that comes late counts as the first.
	QuorumSince time.Time
	// LeaderlessSince is since when enough members answer for a quorum, and none
	// leads to a leader; zero if that isn't so.
	LeaderlessSince time.Time
	// Standstill is the detail of the Reason of that kind: what the operator has waited
	// for too long; "" if nothing.
	Standstill string
	// StandstillSince is since when no step has succeeded; zero if nothing is to be done.
	StandstillSince time.Time
	// LiftPutOff is true for a while after alarms could not be lifted.
	LiftPutOff bool
	// Record is what was on record or seen last; nil: nothing. seen is what a quorum
	// says now. accepted is the record that a person overrules.
	Record   *api.ClusterRecord
	Seen     Testimony
	Accepted string
	// Members is the membership joined with pods and health, sorted by ID.
	// Without a quorum it is what the most advanced member remembers, or empty.
	Members []MemberState
}

// MemberState is a member with what is known of it.
type MemberState struct {
	etcd.Member
	// PodName is the name of its pod, "" for a member that is not of the operator's
	// making.
	PodName string
	Pod     *manifest.PodState
	Volume  *manifest.VolumeState
	// Status is nil when the member did not answer.
	Status *etcd.Status
	Err    error
	// Stalled is true for a voter that answers, and confirms no read though the others
	// do: its disk hangs, or it is cut off from them.
	Stalled bool
	// DownSince is when it was first seen without an answer or a leader; zero if
	// it is healthy.
	DownSince time.Time
	// Received is when it was last seen to receive a copy of the database; zero: never.
	Received time.Time
	// CopyUnseen is true where that can't be seen.
	CopyUnseen bool
}

// newName is the name of the next member; "" where the observation has none.
func (o *Observation) newName() string {
	if len(o.NewNames) == 0 {
		return ""
	}
	return o.NewNames[0]
}

// OwnedObject is an object that the operator keeps for a cluster besides its pods:
// a Service or the PodDisruptionBudget.
type OwnedObject struct {
	Name string
	UID  types.UID
	// Owned is true if the object is there and belongs to this EtcdCluster.
	Owned bool
	// Leaving is true while it is being deleted. A finalizer may take its time;
	// until it is gone nothing can be done, and its end starts a pass.
	Leaving bool
	// Edited says what of it is not as the operator makes it; empty if all is.
	Edited string
	// Remake is true where it must be deleted and made anew to be put right.
	Remake bool
	// PutOff is true while no write of it is tried.
	PutOff bool
	// Taken is true while somebody else's object was seen in its place. It is tried again
	// after a while.
	Taken bool
}

// Ok tells whether the object is there to be used.
func (b OwnedObject) Ok() bool { return b.Owned && !b.Leaving }

// ErrNoCertificate is why a member is not asked.
var ErrNoCertificate = errors.New("the operator has no certificate to ask it with")

// ErrOtherMember is the answer of an address that was given to another pod
// meanwhile.
var ErrOtherMember = errors.New("another member answers at its address")

// BudgetState is the cluster's PodDisruptionBudget as an observation sees it.
type BudgetState struct {
	OwnedObject
	MinAvailable int // 0 where there is none
	// Written is the number that was written just now and is not written again
	// at once, should somebody undo it; 0 when that is over.
	Written int
}

// RefusedPods is what the API server said when it last refused to take a pod: a
// quota is used up, a policy forbids it, what the spec names does not exist.
type RefusedPods struct {
	Why string
	// Generation is that of the spec from which the pod was made: another one is
	// tried at once.
	Generation int64
	Until      time.Time // no pod is tried before
}

// Testimony is what the member through which a quorum answered says of its data,
// at or after that answer. Zero values are not known.
type Testimony struct {
	ClusterID, Index uint64
	Revision         int64
}
