// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// RestoreFinalizer delays the deletion of an EtcdRestore, from the stop of the old
	// cluster until the new one has all its members. It also delays the deletion of
	// the old EtcdCluster until its pods have ended.
	RestoreFinalizer = "etcd.database.coreos.com/restore"

	// RestoredAnnotation on an EtcdRestore contains the time of its success. The
	// operator ignores an EtcdRestore with this annotation, even without a status. A
	// copy from a backup of Kubernetes therefore does nothing.
	RestoredAnnotation = GroupName + "/restored"
)

// RestorePhase is the progress of a restore.
type RestorePhase string

// The phases of a restore, in their order. The old cluster is untouched until
// Stopping.
const (
	// RestorePhaseNone means that no operator has seen the EtcdRestore yet.
	RestorePhaseNone RestorePhase = ""
	// RestorePhaseInvalid means that the operator cannot follow the spec until an
	// edit. `reason` states why. The old cluster is untouched.
	RestorePhaseInvalid RestorePhase = "Invalid"
	// RestorePhaseVerifying means that the operator searches for the backup and reads
	// it. The old cluster is untouched.
	RestorePhaseVerifying RestorePhase = "Verifying"
	// RestorePhaseRetrying means that the backup is unavailable, or that the restore
	// cannot replace the cluster now. The next attempt begins at
	// `nextExecutionDate`. The old cluster is untouched.
	RestorePhaseRetrying RestorePhase = "Retrying"
	// RestorePhaseFailed means that the backup is damaged or does not fit. Or the
	// restore could not begin for a day, or v0.9.4 gave it up. The operator waits for
	// an edit. The old cluster is untouched.
	RestorePhaseFailed RestorePhase = "Failed"
	// RestorePhaseStopping means that the operator stops the old cluster.
	RestorePhaseStopping RestorePhase = "Stopping"
	// RestorePhaseCreating means that the operator creates the EtcdCluster.
	RestorePhaseCreating RestorePhase = "Creating"
	// RestorePhaseStarting means that the first member fetches the backup and starts
	// from it.
	RestorePhaseStarting RestorePhase = "Starting"
	// RestorePhaseGrowing means that the first member serves and the other members
	// join.
	RestorePhaseGrowing RestorePhase = "Growing"
	// RestorePhaseSucceeded means that the cluster has all its members. This phase is
	// final.
	RestorePhaseSucceeded RestorePhase = "Succeeded"
)

// RestoreStatus is the progress and the result of an EtcdRestore.
type RestoreStatus struct {
	// Generation of the spec that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Progress of the restore. The old cluster is untouched if the phase is empty (no
	// operator has seen the object), Invalid, Verifying, Retrying or Failed. Then
	// follow Stopping (the old cluster), Creating (the EtcdCluster), Starting (the
	// first member, from the backup), Growing (the other members) and Succeeded.
	// +optional
	Phase RestorePhase `json:"phase,omitempty"`

	// True if the cluster is back: as many members as its size are healthy.
	// +optional
	Succeeded bool `json:"succeeded"`

	// The event that the restore waits for, or the cause of its failure, and what to
	// do.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Ready: the cluster is back with all its members.
	// Reconciling: the operator works towards that. Stalled: the operator needs help
	// from a person.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Number of consecutive failed attempts, all before the stop of the old cluster.
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// Due time of the next attempt; absent if none is due.
	// +optional
	NextExecutionDate *metav1.Time `json:"nextExecutionDate,omitempty"`

	// Time at which the operator first saw the restore, or the edit that it follows.
	// +optional
	StartDate *metav1.Time `json:"startDate,omitempty"`

	// Time at which the operator first saw the first member serve. For another 15
	// minutes, the operator repeats the restore if the cluster is lost.
	// +optional
	ServedDate *metav1.Time `json:"servedDate,omitempty"`

	// Time of the restore's success.
	// +optional
	CompletionDate *metav1.Time `json:"completionDate,omitempty"`

	// Backup that the operator chose and read completely.
	// +optional
	Backup *RestoredBackup `json:"backup,omitempty"`

	// Newer backups that the operator passed over, with the causes, and an older
	// backup that contains more.
	// +optional
	// +listType=atomic
	PassedOver []string `json:"passedOver,omitempty"`

	// Manifest of the new EtcdCluster, from before the stop of the old one. To create
	// the cluster by hand, pass the output of `kubectl get etcdrestore NAME -o
	// jsonpath='{.status.cluster}'` to `kubectl create -f -`.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Cluster *runtime.RawExtension `json:"cluster,omitempty"`

	// UID of the old EtcdCluster; empty if there was none.
	// +optional
	ReplacedUID types.UID `json:"replacedUID,omitempty"`

	// UID of the new EtcdCluster.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
}

// RestoredBackup is a backup that the operator has read completely.
type RestoredBackup struct {
	// Generation of the spec that this choice follows.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Location of the backup: bucket and key, or the path on a volume.
	Key string `json:"key"`

	// Size of the backup in bytes.
	Size int64 `json:"size"`

	// SHA-256 of the backup's content, in hexadecimal digits. The first member
	// accepts no other content.
	SHA256 string `json:"sha256"`

	// Version of the etcd that the backup comes from; empty if unknown.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// Revision of etcd's data in the backup; 0 if unknown.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// Size in bytes of the snapshot alone, if a log of changes follows it; 0: none does.
	// +optional
	SnapshotSize int64 `json:"snapshotSize,omitempty"`

	// ID of the etcd cluster that the backup comes from; empty if unknown.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Revision that the restore takes the data to; 0: that of the backup.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Number of revisions that a restore of an earlier revision adds.
	// +optional
	BumpRevision int64 `json:"bumpRevision,omitempty"`

	// Start time of the backup; absent if unknown.
	// +optional
	Taken *metav1.Time `json:"taken,omitempty"`

	// Modification time of the object in the store. If it changes, the object is no
	// longer the one that the operator read, and the operator does not restore it.
	// +optional
	Modified *metav1.Time `json:"modified,omitempty"`

	// True if the backup comes from a time without a quorum: writes may be missing.
	// +optional
	Uncertain bool `json:"uncertain,omitempty"`
}
