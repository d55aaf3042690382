// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EtcdRestore restores an etcd cluster from a backup, once. The restore operator reads
// the whole backup first. If the backup is good, the operator replaces the EtcdCluster
// of the same name, or creates it. The etcd operator then starts its first member from
// the backup.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdrestores,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Progress of the restore"
// +kubebuilder:printcolumn:name="Succeeded",type=boolean,JSONPath=`.status.succeeded`,description="Whether the cluster is back with all its members"
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.backup.etcdRevision`,description="Revision of etcd's data in the backup"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="What the restore waits for, or why it failed"
// +kubebuilder:printcolumn:name="Backup",type=string,priority=1,JSONPath=`.status.backup.key`,description="Location of the backup"
// +kubebuilder:validation:XValidation:rule=`self.metadata.name == self.spec.etcdCluster.name || oldSelf.?spec.?etcdCluster.?name.orValue("") == self.spec.etcdCluster.name`,optionalOldSelf=true,message="etcdCluster.name must be the name of the EtcdRestore: the restored cluster has it",fieldPath=".spec.etcdCluster.name"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') || oldSelf.hasValue()",optionalOldSelf=true,message="metadata.name must be the name of an EtcdCluster: at most 52 lowercase letters, digits and dashes, with a letter first",fieldPath=".metadata"
type EtcdRestore struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The name equals the name of the cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Cluster and backup. The operator follows edits until the first member of the
	// restored cluster serves: it chooses and reads a backup again. Later edits have no
	// effect. To restore again, delete the EtcdRestore and create another one.
	Spec RestoreSpec `json:"spec"`

	// Progress and result. Only the restore operator writes it.
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

// RestoreSpec names the cluster and the backup.
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
// +kubebuilder:validation:XValidation:rule="!has(self.time) || has(self.pick) && self.pick == 'Newest'",message="time chooses among backups and their log: it needs pick: Newest",fieldPath=".time"
// +kubebuilder:validation:XValidation:rule="!has(self.time) || !has(self.before) && (!has(self.revision) || self.revision == 0)",message="time excludes before and revision",fieldPath=".time"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterID) || size(self.clusterID) == 0 || has(self.pick) && self.pick == 'Newest'",message="clusterID chooses among several backups: it needs pick: Newest",fieldPath=".clusterID"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterID) || self.clusterID.matches('^[0-9a-f]*$')",message="clusterID must have up to 16 hexadecimal digits, such as cdf818194e3a8c32",fieldPath=".clusterID"
type RestoreSpec struct {
	// EtcdCluster to restore. Its name must equal the name of the EtcdRestore.
	EtcdCluster EtcdClusterRef `json:"etcdCluster"`

	// Kind of store with the backup. The section of the same name contains the
	// location.
	BackupStorageType BackupStorageType `json:"backupStorageType"`

	BackupSource `json:",inline"`

	// Choice of the backup. Exact: the object with the section's path. Newest: the
	// newest good backup from the schedule of an EtcdBackup with the same path
	// (`<path>_v<revision>_<YYYY-MM-DD-HH:MM:SS>`). The operator passes over damaged
	// backups. Default: Exact.
	// +optional
	Pick RestorePick `json:"pick,omitempty"`

	// Latest start of the backup: the operator chooses the newest backup that began at
	// this time or before. Requires `pick: Newest`. The form is that of RFC 3339 with
	// capital letters, such as 2026-11-21T03:30:00Z.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Before *metav1.Time `json:"before,omitempty"`

	// Template of the EtcdCluster, if none with this name exists: it is gone, or you
	// restore a copy beside the original cluster. If an EtcdCluster with this name
	// exists, the operator refuses the restore and does not change that cluster.
	// +optional
	ClusterTemplate *ClusterTemplate `json:"clusterTemplate,omitempty"`

	// Revision of etcd to restore, such as the last one before a mistake. A backup
	// holds each revision since etcd's last compaction before it. With `pick: Newest`,
	// the operator chooses the newest backup that holds this revision, or that the log
	// of an EtcdBackup with `continuous` takes there. A lease that
	// had ended before the backup gets a time to live of 300 seconds. Users and roles
	// are those of the backup. 0: the revision of the backup. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Revision int64 `json:"revision,omitempty"`

	// Moment to restore: the last revision that etcd had by then. Requires `pick: Newest`
	// and the path of an EtcdBackup with `continuous`. Revisions are dated when the
	// backup operator receives them. The form is that of `before`. Default: the moment of
	// the backup.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Time *metav1.Time `json:"time,omitempty"`

	// ID of the etcd cluster that the backup must come from, in hexadecimal digits, as in
	// `status.clusterID` of an EtcdBackup. Requires `pick: Newest`. Set it if
	// several clusters have stored backups at this path. Default: any cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID,omitempty"`

	// Number of revisions to add to the restored data, such as 1000000000. etcd marks
	// all lower revisions as compacted. Clients that watch or cache data, such as
	// Kubernetes' API servers, then get an error and read all data again. Otherwise
	// they can miss changes of a revision that they already know. Requires etcd
	// 3.4.27, 3.5.10 or 3.6. At most 1125899906842624 (2^50), because etcd cannot start
	// beyond 2^63. Default: 0, which adds none. With `revision` or `time`, and without
	// `clusterTemplate`, 0 raises the revision to 1000000000 above that of the backup, if
	// etcd has the option. It also counts from the revision in the status of the
	// EtcdCluster. The least that you can set then is 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1125899906842624
	BumpRevision int64 `json:"bumpRevision,omitempty"`

	// Treatment of the old cluster's volumes. DeleteWhenRestored: the operator deletes
	// them when the restored cluster has all its members. Keep: they remain, without an
	// owner, until you delete them. DeleteFirst: the operator deletes them with the old
	// cluster, if storage is scarce. Default: DeleteWhenRestored.
	// +optional
	OldVolumes OldVolumes `json:"oldVolumes,omitempty"`
}

// MaxBumpRevision is the highest bumpRevision, as in the marker. It leaves room for
// many restores, and for later writes.
const MaxBumpRevision = 1 << 50

// ClusterTemplate is the template of an EtcdCluster.
type ClusterTemplate struct {
	// Labels and annotations of the EtcdCluster.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`

	// Spec of the EtcdCluster, as in `kubectl explain etcdcluster.spec`.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec"`
}

// TemplateMetadata is the metadata of the new EtcdCluster.
type TemplateMetadata struct {
	// Labels of the new EtcdCluster. Default: none.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the new EtcdCluster, such as the one for operators of all
	// namespaces. Default: none.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RestorePick is the choice of a backup.
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

// OldVolumes is the treatment of the old cluster's volumes.
//
// +kubebuilder:validation:Enum=DeleteWhenRestored;Keep;DeleteFirst
type OldVolumes string

// The treatments of old volumes.
const (
	// OldVolumesDeleteWhenRestored keeps them until the restore has succeeded.
	OldVolumesDeleteWhenRestored OldVolumes = "DeleteWhenRestored"
	// OldVolumesKeep keeps them.
	OldVolumesKeep OldVolumes = "Keep"
	// OldVolumesDeleteFirst deletes them with the old cluster.
	OldVolumesDeleteFirst OldVolumes = "DeleteFirst"
)
