// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterPhase is the stage of a cluster's life. No phase is final: the operator
// continues with a Failed cluster when its spec or its environment changes.
type ClusterPhase string

// The phases of a cluster.
const (
	// ClusterPhaseNone means that no operator has seen the cluster yet.
	ClusterPhaseNone ClusterPhase = ""
	// ClusterPhaseCreating means that the first member does not serve yet.
	ClusterPhaseCreating ClusterPhase = "Creating"
	// ClusterPhaseRunning means that the first member has served. From here on, the
	// cluster can hold data.
	ClusterPhaseRunning ClusterPhase = "Running"
	// ClusterPhaseFailed means that the operator cannot continue without a change by
	// somebody else, for example because all members are gone with their data.
	// `reason` states which change.
	ClusterPhaseFailed ClusterPhase = "Failed"
)

// ClusterConditionType names one aspect of a cluster's state.
type ClusterConditionType string

// The conditions of a cluster.
const (
	// ClusterConditionAvailable is True while a quorum of members serves.
	ClusterConditionAvailable ClusterConditionType = "Available"
	// ClusterConditionRecovering is True while the operator replaces dead members.
	ClusterConditionRecovering ClusterConditionType = "Recovering"
	// ClusterConditionScaling is True while the number of members changes.
	ClusterConditionScaling ClusterConditionType = "Scaling"
	// ClusterConditionUpgrading is True while the version of members changes.
	ClusterConditionUpgrading ClusterConditionType = "Upgrading"
	// ClusterConditionUpdating is True while members and their volumes follow an
	// edit of the pod template, and False while they cannot.
	ClusterConditionUpdating ClusterConditionType = "Updating"
	// ClusterConditionCertificatesValid is True while all certificates of the
	// cluster are valid for at least CertificateWarning and cover the members'
	// names. A cluster without TLS does not have it.
	ClusterConditionCertificatesValid ClusterConditionType = "CertificatesValid"
	// ClusterConditionReady is True while the cluster is as specified and serves.
	ClusterConditionReady ClusterConditionType = ConditionReady
	// ClusterConditionReconciling is True while the operator works towards the spec.
	ClusterConditionReconciling ClusterConditionType = ConditionReconciling
	// ClusterConditionStalled is True while the operator needs help from a person.
	ClusterConditionStalled ClusterConditionType = ConditionStalled
)

// ClusterStatus is the last observed state of a cluster.
type ClusterStatus struct {
	// Stage of the cluster's life: empty (no operator has seen it), Creating,
	// Running or Failed. No phase is final.
	// +optional
	Phase ClusterPhase `json:"phase"`

	// Cause of the phase Failed, of a rejected spec, or of refused pods. Or the event
	// that the operator has waited for longer than a minute.
	// +optional
	Reason string `json:"reason,omitempty"`

	// True while spec.paused stops the operator's work on the cluster.
	// +optional
	ControlPaused bool `json:"controlPaused,omitempty"`

	// Generation of the object (metadata.generation) that this status reflects. If
	// it is lower than the object's, the operator has not seen the last edit yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Aspects of the cluster's state, one entry for each type. Ready: the cluster is as
	// specified and serves. Reconciling: the operator works towards the spec. Stalled:
	// the operator needs help from a person. Available: a quorum serves. Recovering: the operator replaces dead members. Scaling: the number of
	// members changes. Upgrading: the version of members changes. Updating: members
	// follow an edit of the pod template. CertificatesValid: the certificates cover
	// the members' names and do not expire within 30 days.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []ClusterCondition `json:"conditions,omitempty"`

	// Number of members in etcd's own membership.
	// +optional
	Size int `json:"size"`

	// Label selector of the cluster's pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Name of the client Service, in the cluster's namespace.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// Port of the client Service.
	// +optional
	ClientPort int `json:"clientPort,omitempty"`

	// Services of spec.service.bridges that lead to members now.
	// +optional
	// +listType=set
	BridgedServices []string `json:"bridgedServices,omitempty"`

	// Members, by the names of their pods.
	// +optional
	Members MembersStatus `json:"members,omitempty"`

	// State of each member.
	// +optional
	// +listType=atomic
	MemberStatuses []MemberStatus `json:"memberStatuses,omitempty"`

	// Number of members that node drains must leave: minAvailable of the cluster's
	// PodDisruptionBudget. 0 if there is no budget.
	// +optional
	MinAvailable int `json:"minAvailable,omitempty"`

	// Number of members that serve clients: the length of members.ready.
	// +optional
	ReadyMembers int `json:"readyMembers"`

	// etcd version of the bootstrap, without a leading v; empty if unknown. It
	// limits later upgrades, because etcd keeps data of its first version.
	// +optional
	InitialVersion string `json:"initialVersion,omitempty"`

	// True if tags of images have no leading v unless `spec.version` has one. That is
	// so in a cluster from the fork of v0.9.4 whose images had no v, and in one that a
	// restore makes of it. It is also so with the annotation
	// `etcd.database.coreos.com/literal-tags: "true"`.
	// +optional
	LiteralTags bool `json:"literalTags,omitempty"`

	// Backup that the cluster started from; absent if it started empty.
	// +optional
	RestoredFrom *RestoredFrom `json:"restoredFrom,omitempty"`

	// State of the import of a running etcd; absent without spec.importFrom.
	// +optional
	Import *ImportStatus `json:"import,omitempty"`

	// Last state that a quorum agreed on. A cluster that contradicts it has lost
	// data. The operator then changes nothing, and status.reason explains what to
	// do.
	// +optional
	Record *ClusterRecord `json:"record,omitempty"`

	// Ways out of a lost quorum, and what each one loses; absent while there is a quorum.
	// +optional
	Recovery *RecoveryStatus `json:"recovery,omitempty"`

	// Oldest etcd version that a member runs, without a leading v. During an
	// upgrade, it is the old version until all members have moved.
	// +optional
	CurrentVersion string `json:"currentVersion"`

	// etcd version that the members move to; empty without an upgrade.
	// +optional
	TargetVersion string `json:"targetVersion"`
}

// ClusterRecord is the last state that a quorum of the cluster agreed on. The index
// and the revision never decrease in a cluster that keeps its data. The operator
// writes them together with other changes, and alone at most every five minutes.
type ClusterRecord struct {
	// ID of the cluster in hexadecimal, as etcdctl prints it.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Members, by ID.
	// +optional
	// +listType=atomic
	Members []RecordedMember `json:"members,omitempty"`

	// Raft index that a quorum has committed. The operator writes it together with
	// other changes, and alone at most every five minutes.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// Revision of the data at that time.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Time of the last write of the record (RFC 3339, UTC).
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
}

// RecordedMember is a member that a quorum agreed on.
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

// RestoredFrom is the backup that a cluster's first member started from.
type RestoredFrom struct {
	// Name of the EtcdRestore.
	// +optional
	Restore string `json:"restore,omitempty"`

	// UID of the EtcdRestore.
	RestoreUID types.UID `json:"restoreUID"`

	// Location of the backup: bucket and key.
	// +optional
	Key string `json:"key,omitempty"`

	// SHA-256 of the backup's content, in hexadecimal digits.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// Revision of etcd's data in the backup; 0 if unknown.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// Revision that the restore took the data back to; 0: that of the backup.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Number of revisions that the restore added. Clients may know revisions up to
	// the sum of it and the restored revision, and later ones. Another restore must
	// begin above them.
	// +optional
	BumpRevision int64 `json:"bumpRevision,omitempty"`
}

// MembersStatus lists the members of a cluster by readiness.
type MembersStatus struct {
	// Members that serve clients.
	// +optional
	// +listType=atomic
	Ready []string `json:"ready,omitempty"`

	// Members that do not serve clients: they start, or are broken.
	// +optional
	// +listType=atomic
	Unready []string `json:"unready,omitempty"`
}

// MemberStatus is the state of one member. The operator writes a size after a change
// of at least a tenth of the file and a mebibyte. It writes the lag after a change of
// at least a tenth and a thousand entries. It also writes both together with other
// changes.
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

	// True if the member is the leader.
	// +optional
	Leader bool `json:"leader,omitempty"`

	// True if the member has no vote yet.
	// +optional
	Learner bool `json:"learner,omitempty"`

	// etcd version that the member runs, without a leading v; empty if the member
	// does not answer.
	// +optional
	Version string `json:"version,omitempty"`

	// Size of the member's database file, in bytes.
	// +optional
	DBSize int64 `json:"dbSize,omitempty"`

	// Bytes of the database in use. A defragmentation frees the rest.
	// +optional
	DBSizeInUse int64 `json:"dbSizeInUse,omitempty"`

	// Number of raft entries that the most advanced member has logged and this one
	// has not applied. A few are normal under load.
	// +optional
	RaftIndexLag int64 `json:"raftIndexLag,omitempty"`

	// Alarms that the member has raised. NOSPACE: the database has reached its
	// quota, and etcd refuses writes. CORRUPT: the member's data differs from that
	// of others.
	// +optional
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty"`

	// Why the member is not healthy, if known.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// ClusterCondition is one aspect of a cluster's state.
type ClusterCondition struct {
	// Ready, Reconciling, Stalled, Available, Recovering, Scaling, Upgrading, Updating or
	// CertificatesValid.
	Type ClusterConditionType `json:"type"`

	// True, False or Unknown.
	Status v1.ConditionStatus `json:"status"`

	// Time of the last write of the condition (RFC 3339, UTC).
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`

	// Time of the last change of the condition's status (RFC 3339, UTC).
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`

	// Short phrase for the cause, such as `Scaling up`. One word in CamelCase for Ready,
	// Reconciling and Stalled, such as `QuorumLost`.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Details for people, such as `Current cluster size: 1, desired cluster size:
	// 3`.
	// +optional
	Message string `json:"message,omitempty"`
}
