// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// RestoreFinalizer keeps an EtcdRestore, under deletion, from the moment on in
	// which its old cluster is stopped until the new one has all its members; and an
	// EtcdCluster that is replaced until its pods have ended.
	RestoreFinalizer = "etcd.database.coreos.com/restore"

	// RestoredAnnotation on an EtcdRestore tells when it succeeded. With it, the
	// EtcdRestore never does anything again, also where its status was lost, such as
	// when it comes back from a backup of Kubernetes itself.
	RestoredAnnotation = GroupName + "/restored"
)

// RestorePhase is how far a restore has come.
type RestorePhase string

// The phases of a restore, in their order. Until Stopping, nothing was touched.
const (
	// RestorePhaseNone is a restore that no operator has seen yet.
	RestorePhaseNone RestorePhase = ""
	// RestorePhaseInvalid is a spec that can't be followed until it is edited.
	// Nothing was touched.
	RestorePhaseInvalid RestorePhase = "Invalid"
	// RestorePhaseVerifying is a restore whose backup is looked for and read.
	RestorePhaseVerifying RestorePhase = "Verifying"
	// RestorePhaseRetrying is a restore whose backup can't be had, or whose cluster
	// can't be replaced now; the next attempt is at nextExecutionDate. Nothing was
	// touched.
	RestorePhaseRetrying RestorePhase = "Retrying"
	// RestorePhaseFailed is a restore whose backup is damaged, or doesn't fit, which
	// waits for an edit. Nothing was touched.
	RestorePhaseFailed RestorePhase = "Failed"
	// RestorePhaseStopping is a restore whose old cluster is being stopped.
	RestorePhaseStopping RestorePhase = "Stopping"
	// RestorePhaseCreating is a restore whose EtcdCluster is being made.
	RestorePhaseCreating RestorePhase = "Creating"
	// RestorePhaseStarting is a restore whose first member fetches the backup and
	// starts on it.
	RestorePhaseStarting RestorePhase = "Starting"
	// RestorePhaseGrowing is a restore whose first member serves, and whose other
	// members join it.
	RestorePhaseGrowing RestorePhase = "Growing"
	// RestorePhaseSucceeded is a restore whose cluster has all its members. It is
	// final.
	RestorePhaseSucceeded RestorePhase = "Succeeded"
)

// RestoreStatus is what became of an EtcdRestore.
type RestoreStatus struct {
	// Generation of the spec that the rest of the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// How far the restore has come: empty (not seen by an operator yet), Invalid,
	// Verifying, Retrying or Failed, up to which nothing was touched; Stopping (the
	// old cluster), Creating (the EtcdCluster), Starting (the first member, on the
	// backup's data), Growing (the other members join), Succeeded.
	// +optional
	Phase RestorePhase `json:"phase,omitempty"`

	// Whether the cluster is back: as many members as its size are healthy.
	// +optional
	Succeeded bool `json:"succeeded"`

	// What the restore waits for, or why it failed, and what to do.
	// +optional
	Reason string `json:"reason,omitempty"`

	// How many attempts have failed in a row before anything was touched.
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// When the next attempt is due; absent where none is.
	// +optional
	NextExecutionDate *metav1.Time `json:"nextExecutionDate,omitempty"`

	// When the operator first looked at the restore.
	// +optional
	StartDate *metav1.Time `json:"startDate,omitempty"`

	// When the first member of the restored cluster was first seen to serve. Until a
	// quarter of an hour later, a cluster that is lost again is made again.
	// +optional
	ServedDate *metav1.Time `json:"servedDate,omitempty"`

	// When the restore succeeded.
	// +optional
	CompletionDate *metav1.Time `json:"completionDate,omitempty"`

	// The backup that was chosen and read as a whole.
	// +optional
	Backup *RestoredBackup `json:"backup,omitempty"`

	// Newer backups that were passed over, and why; and an older one that holds more.
	// +optional
	// +listType=atomic
	PassedOver []string `json:"passedOver,omitempty"`

	// The EtcdCluster that is made: a manifest, written down before the old one is
	// touched. If ever needed: `kubectl get etcdrestore NAME -o
	// jsonpath='{.status.cluster}'` prints it, and kubectl create -f - takes it.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Cluster *runtime.RawExtension `json:"cluster,omitempty"`

	// UID of the EtcdCluster that is replaced; empty where there was none.
	// +optional
	ReplacedUID types.UID `json:"replacedUID,omitempty"`

	// UID of the EtcdCluster that was made.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
}

// RestoredBackup is a backup that was read as a whole.
type RestoredBackup struct {
	// Generation of the spec by which it was chosen.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Where it is: bucket and key.
	Key string `json:"key"`

	// Its size in bytes.
	Size int64 `json:"size"`

	// SHA-256 of its content, in hexadecimal digits. The first member takes no
	// other content.
	SHA256 string `json:"sha256"`

	// Version of etcd that it was taken from; empty where the store doesn't tell.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// Revision of etcd's data in it; 0 where the store doesn't tell.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// When it was taken; absent where the store doesn't tell.
	// +optional
	Taken *metav1.Time `json:"taken,omitempty"`

	// When the object was stored, as the store tells it. One that was stored at
	// another time is no longer the one that was read, and is not restored.
	// +optional
	Modified *metav1.Time `json:"modified,omitempty"`

	// Whether it was taken while etcd had no quorum: writes may be missing in it.
	// +optional
	Uncertain bool `json:"uncertain,omitempty"`
}
