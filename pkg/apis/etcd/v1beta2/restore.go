// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EtcdRestore is the way of an etcd cluster back from a backup, once. The restore
// operator reads the whole backup first; only when it is good, the EtcdCluster of
// the same name is deleted, if there is one, and made again, and the etcd operator
// starts its first member on the backup's data.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdrestores,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="How far the restore has come"
// +kubebuilder:printcolumn:name="Succeeded",type=boolean,JSONPath=`.status.succeeded`,description="Whether the cluster is back with all its members"
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.backup.etcdRevision`,description="Revision of etcd's data in the backup"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="What the restore waits for, or why it failed"
// +kubebuilder:printcolumn:name="Backup",type=string,priority=1,JSONPath=`.status.backup.key`,description="The backup that the cluster is restored from"
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.etcdCluster.name",message="etcdCluster.name must be the name of the EtcdRestore: the restored cluster has it",fieldPath=".spec.etcdCluster.name"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be the name of an EtcdCluster: at most 52 lowercase letters, digits and dashes, with a letter first",fieldPath=".metadata"
type EtcdRestore struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The name is that of the cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to restore, and from which backup. Until the restored cluster's first
	// member serves, an edit is followed: a backup is chosen and read anew. After
	// that nothing of it counts: to restore again, delete the EtcdRestore and make
	// another.
	Spec RestoreSpec `json:"spec"`

	// What became of it. Written by the restore operator alone.
	// +optional
	Status RestoreStatus `json:"status,omitempty"`
}

// EtcdRestoreList is a list of EtcdRestores.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type EtcdRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EtcdRestore `json:"items"`
}

// RestoreSpec is what a user asks of a restore.
//
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'S3' || has(self.s3)",message="backupStorageType S3 needs the section s3",fieldPath=".s3"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'ABS' || has(self.abs)",message="backupStorageType ABS needs the section abs",fieldPath=".abs"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'GCS' || has(self.gcs)",message="backupStorageType GCS needs the section gcs",fieldPath=".gcs"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'OSS' || has(self.oss)",message="backupStorageType OSS needs the section oss",fieldPath=".oss"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'Volume' || has(self.volume)",message="backupStorageType Volume needs the section volume",fieldPath=".volume"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'S3' || !has(self.s3) || has(self.s3.path) && self.s3.path.matches('^[^/:]+/.')",message="path must be a bucket and a key, such as mybucket/etcd.backup",fieldPath=".s3.path"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'ABS' || !has(self.abs) || has(self.abs.path) && self.abs.path.matches('^[^/:]+/.')",message="path must be a container and a key, such as mycontainer/etcd.backup",fieldPath=".abs.path"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'GCS' || !has(self.gcs) || has(self.gcs.path) && self.gcs.path.matches('^[^/:]+/.')",message="path must be a bucket and a key, such as mybucket/etcd.backup",fieldPath=".gcs.path"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'OSS' || !has(self.oss) || has(self.oss.path) && self.oss.path.matches('^[^/:]+/.')",message="path must be a bucket and a key, such as mybucket/etcd.backup",fieldPath=".oss.path"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'ABS' || !has(self.abs) || has(self.abs.absSecret) && size(self.abs.absSecret) > 0",message="backupStorageType ABS needs the name of a Secret",fieldPath=".abs.absSecret"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'OSS' || !has(self.oss) || has(self.oss.ossSecret) && size(self.oss.ossSecret) > 0",message="backupStorageType OSS needs the name of a Secret",fieldPath=".oss.ossSecret"
// +kubebuilder:validation:XValidation:rule="self.backupStorageType != 'Volume' || !has(self.volume) || has(self.volume.path) && self.volume.path.split('/').all(d, size(d) > 0 && d != '.' && d != '..')",message="path must be a relative path without empty parts, . and ..",fieldPath=".volume.path"
// +kubebuilder:validation:XValidation:rule="!has(self.before) || has(self.pick) && self.pick == 'Newest'",message="before chooses among several backups: it needs pick: Newest",fieldPath=".before"
type RestoreSpec struct {
	// The EtcdCluster to restore. Its name must be that of the EtcdRestore.
	EtcdCluster EtcdClusterRef `json:"etcdCluster"`

	// Kind of store that holds the backup. The section of the same name says where
	// in it.
	BackupStorageType BackupStorageType `json:"backupStorageType"`

	BackupSource `json:",inline"`

	// Which backup to take. Exact: the object that the section's path names.
	// Newest: the newest good one of those that an EtcdBackup with the same path
	// has made on its schedule (`<path>_v<revision>_<YYYY-MM-DD-HH:MM:SS>`); one
	// that turns out to be damaged is passed over. Default: Exact.
	// +optional
	Pick RestorePick `json:"pick,omitempty"`

	// Take the newest of those backups that were begun at this time or before. It
	// needs pick: Newest.
	// +optional
	Before *metav1.Time `json:"before,omitempty"`

	// The cluster to make, where there is no EtcdCluster of the name: because it is
	// gone, or because the backup is to be restored beside the cluster that it was
	// taken from. While there is one, the restore is refused, and that cluster is
	// left alone.
	// +optional
	ClusterTemplate *ClusterTemplate `json:"clusterTemplate,omitempty"`

	// How much to raise the revision of the restored data, such as 1000000000, and
	// mark what is below as compacted: clients that watch or hold what they have
	// read, as Kubernetes' API servers do, are then told that they must read anew,
	// instead of missing what a revision that they know already has become. Needs
	// etcd 3.4.27, 3.5.10 or 3.6. 0: the revision of the backup. At most
	// 1125899906842624 (2^50), since etcd can't start beyond 2^63. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1125899906842624
	BumpRevision int64 `json:"bumpRevision,omitempty"`

	// What becomes of the volumes of the cluster that is replaced.
	// DeleteWhenRestored: they are kept until the restored cluster has all its
	// members. Keep: they are kept, without an owner, for a person to look into and
	// delete. DeleteFirst: they are deleted with the old cluster, where storage for
	// both can't be had. Default: DeleteWhenRestored.
	// +optional
	OldVolumes OldVolumes `json:"oldVolumes,omitempty"`
}

// MaxBumpRevision is the most by which a revision is raised: as the marker says. It
// leaves room for many restores, and for all that is written after them.
const MaxBumpRevision = 1 << 50

// ClusterTemplate is an EtcdCluster to be made.
type ClusterTemplate struct {
	// Labels and annotations of the EtcdCluster.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`

	// Specification of the EtcdCluster: all that may stand in spec of an
	// EtcdCluster, and nothing else. `kubectl explain etcdcluster.spec` tells.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec"`
}

// TemplateMetadata are metadata of an object to be made.
type TemplateMetadata struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RestorePick says which backup to restore.
//
// +kubebuilder:validation:Enum=Exact;Newest
type RestorePick string

// The ways to choose a backup.
const (
	// RestorePickExact takes the object that the path names.
	RestorePickExact RestorePick = "Exact"
	// RestorePickNewest takes the newest good backup of a schedule.
	RestorePickNewest RestorePick = "Newest"
)

// OldVolumes says what becomes of the volumes of a cluster that is replaced.
//
// +kubebuilder:validation:Enum=DeleteWhenRestored;Keep;DeleteFirst
type OldVolumes string

// What can become of old volumes.
const (
	// OldVolumesDeleteWhenRestored keeps them until the restore has succeeded.
	OldVolumesDeleteWhenRestored OldVolumes = "DeleteWhenRestored"
	// OldVolumesKeep keeps them.
	OldVolumesKeep OldVolumes = "Keep"
	// OldVolumesDeleteFirst deletes them with the old cluster.
	OldVolumesDeleteFirst OldVolumes = "DeleteFirst"
)
