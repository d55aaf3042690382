// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterPhase is where a cluster is in its life. No phase is final: a Failed
// cluster is looked at again when its spec or the world changes.
type ClusterPhase string

// The phases of a cluster.
const (
	// ClusterPhaseNone is a cluster that no operator has seen yet.
	ClusterPhaseNone ClusterPhase = ""
	// ClusterPhaseCreating is a cluster whose first member does not serve yet.
	ClusterPhaseCreating ClusterPhase = "Creating"
	// ClusterPhaseRunning is a cluster that was bootstrapped.
	ClusterPhaseRunning ClusterPhase = "Running"
	// ClusterPhaseFailed is a cluster that the operator cannot help without a
	// change by somebody else; status.reason says which.
	ClusterPhaseFailed ClusterPhase = "Failed"
)

// ClusterConditionType names one aspect of a cluster's state.
type ClusterConditionType string

// The conditions of a cluster.
const (
	// ClusterConditionAvailable is True while a quorum of members serves.
	ClusterConditionAvailable ClusterConditionType = "Available"
	// ClusterConditionRecovering is True while dead members are replaced.
	ClusterConditionRecovering ClusterConditionType = "Recovering"
	// ClusterConditionScaling is True while the number of members changes.
	ClusterConditionScaling ClusterConditionType = "Scaling"
	// ClusterConditionUpgrading is True while the version of members changes.
	ClusterConditionUpgrading ClusterConditionType = "Upgrading"
	// ClusterConditionUpdating is True while members follow an edit of how their
	// pods are made, and False while that can't go on.
	ClusterConditionUpdating ClusterConditionType = "Updating"
	// ClusterConditionCertificatesValid is True while all certificates of the
	// cluster are good for at least CertificateWarning and cover the members'
	// names. It is absent where the cluster uses none.
	ClusterConditionCertificatesValid ClusterConditionType = "CertificatesValid"
)

// ClusterStatus is what the operator last saw of a cluster.
type ClusterStatus struct {
	// Where the cluster is in its life: empty (not seen by an operator yet),
	// Creating, Running or Failed. No phase is final.
	// +optional
	Phase ClusterPhase `json:"phase"`

	// Why the cluster is in its phase, where that needs saying.
	// +optional
	Reason string `json:"reason,omitempty"`

	// True while the operator leaves the cluster alone because spec.paused says
	// so.
	// +optional
	ControlPaused bool `json:"controlPaused,omitempty"`

	// Generation of the object (metadata.generation) that this status answers.
	// Older than the object's generation: the last edit was not looked at yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// What goes on in the cluster, one entry for each type: Available (a quorum
	// serves), Recovering (dead members are replaced), Scaling (the number of
	// members changes), Upgrading (the version of members changes), Updating (the
	// members follow an edit of how their pods are made), CertificatesValid (the
	// certificates cover the members' names and don't expire within 30 days).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []ClusterCondition `json:"conditions,omitempty"`

	// Number of members that etcd itself counts.
	// +optional
	Size int `json:"size"`

	// Name of the Service in the cluster's namespace that clients connect to.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// Port of the client Service.
	// +optional
	ClientPort int `json:"clientPort,omitempty"`

	// The members by the names of their pods.
	// +optional
	Members MembersStatus `json:"members,omitempty"`

	// What each member says of itself, for whoever is on call.
	// +optional
	// +listType=atomic
	MemberStatuses []MemberStatus `json:"memberStatuses,omitempty"`

	// Number of members that drains of nodes must leave: minAvailable of the
	// cluster's PodDisruptionBudget. 0: there is none.
	// +optional
	MinAvailable int `json:"minAvailable,omitempty"`

	// Number of members that serve clients: the length of members.ready.
	// +optional
	ReadyMembers int `json:"readyMembers"`

	// etcd version that the cluster was bootstrapped with, without a leading v;
	// empty where that is not on record. What etcd keeps from its first days
	// matters when it is upgraded.
	// +optional
	InitialVersion string `json:"initialVersion,omitempty"`

	// The backup that the cluster was restored from; absent where it was begun
	// empty.
	// +optional
	RestoredFrom *RestoredFrom `json:"restoredFrom,omitempty"`

	// What the operator may not forget of the cluster's data. A cluster that
	// contradicts it has lost data: the operator changes nothing then, and
	// status.reason names the way out.
	// +optional
	Record *ClusterRecord `json:"record,omitempty"`

	// etcd version that the cluster runs, without a leading v. During an upgrade
	// it stays the old one until all members have moved.
	// +optional
	CurrentVersion string `json:"currentVersion"`

	// etcd version that the members are moving to; empty when there is no
	// upgrade.
	// +optional
	TargetVersion string `json:"targetVersion"`
}

// ClusterRecord is what a quorum of the cluster has last agreed on. The index and
// the revision never go back in a cluster that keeps its data. They are written
// together with something else, and at most every five minutes by themselves.
type ClusterRecord struct {
	// ID of the cluster in hexadecimal, as etcdctl prints it.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// The members, by ID.
	// +optional
	// +listType=atomic
	Members []RecordedMember `json:"members,omitempty"`

	// Raft index that a quorum has committed.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// Revision of the data at that time.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// When the record was last written (RFC 3339, UTC).
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
}

// RecordedMember is a member that a quorum has agreed on.
type RecordedMember struct {
	// ID of the member in hexadecimal, as etcdctl prints it.
	ID string `json:"id"`

	// Name of the member and of its pod; empty for a member that the operator did
	// not make and that has not started.
	// +optional
	Name string `json:"name,omitempty"`

	// True once the operator asks etcd to remove the member.
	// +optional
	Removing bool `json:"removing,omitempty"`
}

// RestoredFrom is the backup that a cluster's first member started on.
type RestoredFrom struct {
	// Name of the EtcdRestore.
	// +optional
	Restore string `json:"restore,omitempty"`

	// UID of the EtcdRestore.
	RestoreUID types.UID `json:"restoreUID"`

	// Where the backup is: bucket and key.
	// +optional
	Key string `json:"key,omitempty"`

	// SHA-256 of its content, in hexadecimal digits.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// Revision of etcd's data in it; 0 where that is not known.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// By how much the revision was raised. Clients may know revisions up to the sum
	// of both, and later ones: another restore has to begin above them.
	// +optional
	BumpRevision int64 `json:"bumpRevision,omitempty"`
}

// MembersStatus sorts the members of a cluster by whether they serve.
type MembersStatus struct {
	// Members that serve clients.
	// +optional
	// +listType=atomic
	Ready []string `json:"ready,omitempty"`

	// Members that do not serve clients: still starting, or broken.
	// +optional
	// +listType=atomic
	Unready []string `json:"unready,omitempty"`
}

// MemberStatus is what is known of one member. Sizes and lag are written anew
// when they have changed by a tenth or more (of the file, and a mebibyte; of the lag, and a
// thousand entries), or together with something else.
type MemberStatus struct {
	// Name of the member and of its pod; empty for a member that the operator did
	// not make and that has not started.
	// +optional
	Name string `json:"name,omitempty"`

	// ID of the member in hexadecimal, as etcdctl prints it.
	ID string `json:"id"`

	// True if the member answers, knows a leader, and serves reads that a quorum
	// confirms.
	// +optional
	Healthy bool `json:"healthy"`

	// True if the member leads.
	// +optional
	Leader bool `json:"leader,omitempty"`

	// True if the member has no vote yet.
	// +optional
	Learner bool `json:"learner,omitempty"`

	// etcd version that the member runs, without a leading v; empty where it does
	// not answer.
	// +optional
	Version string `json:"version,omitempty"`

	// Size of the member's database file, in bytes.
	// +optional
	DBSize int64 `json:"dbSize,omitempty"`

	// Bytes of the database that are in use; the rest is freed by a
	// defragmentation.
	// +optional
	DBSizeInUse int64 `json:"dbSizeInUse,omitempty"`

	// Number of raft entries that the member has not applied and the most advanced
	// member has logged. A few under load are normal.
	// +optional
	RaftIndexLag int64 `json:"raftIndexLag,omitempty"`

	// Alarms that the member has raised: NOSPACE (the database has reached its
	// quota: writes are refused) or CORRUPT (its data differs from that of
	// others).
	// +optional
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty"`

	// Why the member is not healthy, where that is known.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// ClusterCondition is one aspect of a cluster's state.
type ClusterCondition struct {
	// What the condition is about: Available, Recovering, Scaling, Upgrading,
	// Updating or CertificatesValid.
	Type ClusterConditionType `json:"type"`

	// True, False or Unknown.
	Status v1.ConditionStatus `json:"status"`

	// When the condition was last written (RFC 3339, UTC).
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`

	// When the condition last changed its status (RFC 3339, UTC).
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`

	// One short phrase that says why, such as `Scaling up`.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The details for a person, such as `Current cluster size: 1, desired
	// cluster size: 3`.
	// +optional
	Message string `json:"message,omitempty"`
}
