// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdBackup requests backups of an etcd cluster, once or on a schedule. The backup
// operator streams a snapshot of one member to an object store or a volume. A backup
// is visible only when it is complete.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdbackups,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Current activity of the backup operator"
// +kubebuilder:printcolumn:name="Succeeded",type=boolean,JSONPath=`.status.succeeded`,description="Whether the last attempt made a backup"
// +kubebuilder:printcolumn:name="Last Success",type=date,JSONPath=`.status.lastSuccessDate`,description="When the newest backup was complete"
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextExecutionDate`,description="When the next backup is due"
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.etcdRevision`,description="Revision of etcd's data in the newest backup"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Key",type=string,priority=1,JSONPath=`.status.key`,description="Where the newest backup is stored"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.Reason`,description="Why the last attempt failed"
type EtcdBackup struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Source, schedule and destination of the backups. An edit stops the current
	// attempt, and another one follows, except if it changes only
	// `backupPolicy.suspend`, `restoreTest` or `continuous`. Without a schedule, an
	// edit of the source or the destination starts another backup.
	Spec BackupSpec `json:"spec"`

	// Result of the last attempts. Only the backup operator writes it.
	// +optional
	Status BackupStatus `json:"status,omitempty"`
}

// EtcdBackupList is a list of EtcdBackups.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type EtcdBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EtcdBackup `json:"items"`
}

// BackupStorageType is a kind of store for backups.
//
// +kubebuilder:validation:Enum=S3;ABS;GCS;OSS;Volume
type BackupStorageType string

// The kinds of stores.
const (
	// BackupStorageTypeS3 is Amazon S3, or a store with its protocol.
	BackupStorageTypeS3 BackupStorageType = "S3"
	// BackupStorageTypeABS is Azure Blob Storage.
	BackupStorageTypeABS BackupStorageType = "ABS"
	// BackupStorageTypeGCS is Google Cloud Storage.
	BackupStorageTypeGCS BackupStorageType = "GCS"
	// BackupStorageTypeOSS is Alibaba Cloud's Object Storage Service.
	BackupStorageTypeOSS BackupStorageType = "OSS"
	// BackupStorageTypeVolume is a directory of the backup operator's pod.
	BackupStorageTypeVolume BackupStorageType = "Volume"
)

// BackupSpec contains the source, schedule and destination of backups.
//
// +kubebuilder:validation:XValidation:rule="has(self.etcdCluster) != (has(self.etcdEndpoints) && size(self.etcdEndpoints) > 0)",message="either etcdEndpoints or etcdCluster must say what to back up"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'S3' || has(self.s3)",message="storageType S3 needs the section s3",fieldPath=".s3"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'ABS' || has(self.abs)",message="storageType ABS needs the section abs",fieldPath=".abs"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'GCS' || has(self.gcs)",message="storageType GCS needs the section gcs",fieldPath=".gcs"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'OSS' || has(self.oss)",message="storageType OSS needs the section oss",fieldPath=".oss"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'Volume' || has(self.volume)",message="storageType Volume needs the section volume",fieldPath=".volume"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'S3' || !has(self.s3) || has(self.s3.path) && self.s3.path.matches('^[^/:]+/.')",message="path must be a bucket and a key, such as mybucket/etcd.backup",fieldPath=".s3.path"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'ABS' || !has(self.abs) || has(self.abs.path) && self.abs.path.matches('^[^/:]+/.')",message="path must be a container and a key, such as mycontainer/etcd.backup",fieldPath=".abs.path"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'GCS' || !has(self.gcs) || has(self.gcs.path) && self.gcs.path.matches('^[^/:]+/.')",message="path must be a bucket and a key, such as mybucket/etcd.backup",fieldPath=".gcs.path"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'OSS' || !has(self.oss) || has(self.oss.path) && self.oss.path.matches('^[^/:]+/.')",message="path must be a bucket and a key, such as mybucket/etcd.backup",fieldPath=".oss.path"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'ABS' || !has(self.abs) || has(self.abs.absSecret) && size(self.abs.absSecret) > 0",message="storageType ABS needs the name of a Secret",fieldPath=".abs.absSecret"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'OSS' || !has(self.oss) || has(self.oss.ossSecret) && size(self.oss.ossSecret) > 0",message="storageType OSS needs the name of a Secret",fieldPath=".oss.ossSecret"
// +kubebuilder:validation:XValidation:rule="self.storageType != 'Volume' || !has(self.volume) || has(self.volume.path) && self.volume.path.split('/').all(d, size(d) > 0 && d != '.' && d != '..')",message="path must be a relative path without empty parts, . and ..",fieldPath=".volume.path"
// +kubebuilder:validation:XValidation:rule="!has(self.continuous) || has(self.backupPolicy) && (has(self.backupPolicy.backupIntervalInSecond) && self.backupPolicy.backupIntervalInSecond > 0 || has(self.backupPolicy.schedule) && size(self.backupPolicy.schedule) > 0)",message="continuous needs a schedule: the log follows its backups",fieldPath=".continuous"
type BackupSpec struct {
	// Client URLs of the cluster's members, or of a Service in front of them,
	// such as http://example-etcd-cluster-client:2379. The operator chooses a member
	// with all writes that etcd has acknowledged before the start of the attempt. It
	// prefers followers.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	EtcdEndpoints []string `json:"etcdEndpoints,omitempty"`

	// EtcdCluster in the same namespace, instead of etcdEndpoints. The operator finds
	// its members. The cluster's operatorSecret is the default of clientTLSSecret.
	// +optional
	EtcdCluster *EtcdClusterRef `json:"etcdCluster,omitempty"`

	// Kind of store. The section of the same name contains the location.
	StorageType BackupStorageType `json:"storageType"`

	// Schedule and retention. Default: one backup, at once.
	// +optional
	BackupPolicy *BackupPolicy `json:"backupPolicy,omitempty"`

	BackupSource `json:",inline"`

	// Secret with the client certificate for etcd. Its keys are etcd-client.crt,
	// etcd-client.key and etcd-client-ca.crt, or tls.crt, tls.key and ca.crt.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClientTLSSecret string `json:"clientTLSSecret,omitempty"`

	// Secret with the keys `username` and `password`: a user of etcd with the role
	// root, if etcd asks for a user. Default: that of etcdCluster's spec.auth.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecret string `json:"credentialsSecret,omitempty"`

	// If true, the operator does not verify the members' certificates. The same holds if
	// the TLS of `etcdCluster` says so: false does not switch the verification on.
	// Default: false.
	// +optional
	AllowSelfSignedCertificates bool `json:"allowSelfSignedCertificates,omitempty"`

	// Proof that backups can be restored: the operator restores the newest backup into
	// a new EtcdCluster, examines it, and deletes it. With `continuous`, it restores a
	// random revision of the backups and the log. The restore operator and the etcd
	// operator must run. Default: no test.
	// +optional
	RestoreTest *RestoreTest `json:"restoreTest,omitempty"`

	// Log of all changes between the backups of the schedule, which an EtcdRestore can
	// follow to any revision or time. The operator stores the changes as objects below
	// `<path>_log/`. Requires a schedule in backupPolicy. Default: no log.
	// +optional
	Continuous *ContinuousBackup `json:"continuous,omitempty"`
}

// ContinuousBackup describes the log of changes.
type ContinuousBackup struct {
	// Intended time in seconds from a change in etcd to its storage. A change that is
	// not stored yet is lost with the cluster. While etcd writes all the time, the
	// operator stores an object every half of it. 0: 5. Default: 5.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=60
	MaxLagInSecond int64 `json:"maxLagInSecond,omitempty"`
}

// RestoreTest describes tests of backups by restoring them. The EtcdCluster of a test is named
// after the EtcdBackup, with the suffix -restore-test.
type RestoreTest struct {
	// Least time in seconds from one test to the next. A test begins after a backup, and
	// never for the same backup again once it has a result. With `continuous` and an
	// interval, it also begins without a new backup. 0: each backup that is the newest
	// one when the test before has ended. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IntervalInSecond int64 `json:"intervalInSecond,omitempty"`

	// Limit in seconds for one test, from the creation of the EtcdRestore to the result.
	// Default: 900.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	TimeoutInSecond int64 `json:"timeoutInSecond,omitempty"`

	// Labels, annotations and spec of the EtcdCluster for the test. Default: one member
	// of the version of the backup, without a volume. It has the repository, the
	// resources, the image pull secrets, the nodeSelector, the tolerations, the
	// securityContext and the user of `etcdCluster`. `credentialsSecret` can name the user. If
	// the source has TLS for clients, the template is required: otherwise anybody in the
	// network could read the copy.
	// +optional
	ClusterTemplate *ClusterTemplate `json:"clusterTemplate,omitempty"`

	// Condition on the restored data. Default: none beyond the revision of the backup.
	// +optional
	Check *RestoreCheck `json:"check,omitempty"`
}

// RestoreCheck is a condition on restored data.
type RestoreCheck struct {
	// Key that must exist, such as /app/schema-version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key"`

	// Value that the key must have. It is no place for secrets. Default: any value.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`
}

// EtcdClusterRef names an EtcdCluster.
type EtcdClusterRef struct {
	// Name of the EtcdCluster, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// BackupPolicy contains the schedule and the retention of backups.
//
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || size(self.schedule) == 0 || !has(self.backupIntervalInSecond) || self.backupIntervalInSecond == 0",message="schedule and backupIntervalInSecond exclude each other",fieldPath=".schedule"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || size(self.timeZone) == 0 || has(self.schedule) && size(self.schedule) > 0",message="timeZone is that of schedule, which is not set",fieldPath=".timeZone"
type BackupPolicy struct {
	// Limit in seconds for one attempt, from the first connection to the complete
	// backup. The operator ends an attempt without progress after two minutes. Values
	// above one day (86400) count as one day. Values below 1 count as the default.
	// Default: 60.
	// +optional
	TimeoutInSecond int64 `json:"timeoutInSecond,omitempty"`

	// Seconds from one backup to the next; the first begins at once. 0: one backup
	// only, unless a schedule is set. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	BackupIntervalInSecond int64 `json:"backupIntervalInSecond,omitempty"`

	// Times of the backups, as a cron expression such as "0 */6 * * *". Its five fields
	// are minute, hour, day of month, month and day of week. Also allowed: @hourly,
	// @daily, @weekly, @monthly, @yearly and intervals such as "@every 90m".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ')",message="schedule must not name a time zone: timeZone does"
	Schedule string `json:"schedule,omitempty"`

	// Time zone of the schedule, by its name in the IANA database, such as
	// Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`

	// While true, the operator starts no attempt, deletes nothing, and records no changes; a
	// current attempt continues. When you set it to false, the operator makes up for the
	// last missed backup. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Number of scheduled backups to keep. The operator deletes the oldest other
	// backups of this EtcdBackup. It counts backups without a quorum separately. 0:
	// all. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxBackups int `json:"maxBackups,omitempty"`

	// Seconds for which to keep a scheduled backup. The operator always keeps the
	// newest one and the one of the highest revision. 0: forever. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxAgeInSecond int64 `json:"maxAgeInSecond,omitempty"`
}

// BackupSource is the location of backups in a store. Only the section of the
// storageType has an effect.
type BackupSource struct {
	// +optional
	S3 *S3BackupSource `json:"s3,omitempty"`
	// +optional
	ABS *ABSBackupSource `json:"abs,omitempty"`
	// +optional
	GCS *GCSBackupSource `json:"gcs,omitempty"`
	// +optional
	OSS *OSSBackupSource `json:"oss,omitempty"`
	// +optional
	Volume *VolumeBackupSource `json:"volume,omitempty"`
}

// S3BackupSource is a location in Amazon S3, or in a store with its protocol.
type S3BackupSource struct {
	// Bucket and key, such as mybucket/etcd.backup. On a schedule, keys begin with
	// it: `<path>_v<revision>_<YYYY-MM-DD-HH:MM:SS>`.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// Secret with the keys credentials and config: files of the AWS command line with
	// these names and a profile default. The optional key ca.crt contains the CAs of
	// the endpoint. Default: the credentials of the operator's pod, such as the IAM
	// role of its service account.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AWSSecret string `json:"awsSecret,omitempty"`

	// URL of a store that is not Amazon's, such as https://minio.example.com:9000.
	// Default: that of Amazon in the region of the config.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Endpoint string `json:"endpoint,omitempty"`

	// If true, the bucket is part of the URL's path, not of its host name. Most stores
	// that are not Amazon's need it. Default: false.
	// +optional
	ForcePathStyle bool `json:"forcePathStyle,omitempty"`
}

// ABSBackupSource is a location in Azure Blob Storage.
type ABSBackupSource struct {
	// Container and key, such as mycontainer/etcd.backup. On a schedule, keys begin
	// with it: `<path>_v<revision>_<YYYY-MM-DD-HH:MM:SS>`.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// Secret with the keys storage-account and storage-key. The optional key cloud is
	// AzurePublicCloud (the default), AzureChinaCloud, AzureUSGovernmentCloud or
	// AzureGermanCloud. Without storage-key, the operator uses the identity of its pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ABSSecret string `json:"absSecret"`

	// URL of the account's blob service, if it is not that of the cloud, such as
	// http://azurite:10000/devstoreaccount1.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Endpoint string `json:"endpoint,omitempty"`
}

// GCSBackupSource is a location in Google Cloud Storage.
type GCSBackupSource struct {
	// Bucket and key, such as mybucket/etcd.backup. On a schedule, keys begin with
	// it: `<path>_v<revision>_<YYYY-MM-DD-HH:MM:SS>`.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// Secret with the key access-token (an OAuth 2 token) or credentials.json (the key
	// file of a service account). Default: the credentials of the operator's pod
	// (application default credentials).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	GCPSecret string `json:"gcpSecret,omitempty"`

	// URL of the service, if it is not Google's public one, such as
	// http://fake-gcs-server:4443/storage/v1/.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Endpoint string `json:"endpoint,omitempty"`
}

// OSSBackupSource is a location in Alibaba Cloud's Object Storage Service.
type OSSBackupSource struct {
	// Bucket and key, such as mybucket/etcd.backup. On a schedule, keys begin with
	// it: `<path>_v<revision>_<YYYY-MM-DD-HH:MM:SS>`.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// Secret with the keys accessKeyID and accessKeySecret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	OSSSecret string `json:"ossSecret"`

	// URL of the region's service. Default: http://oss-cn-hangzhou.aliyuncs.com.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Endpoint string `json:"endpoint,omitempty"`
}

// VolumeBackupSource is a location below the directory of the operator's flag
// -volume-dir, on a PersistentVolumeClaim.
type VolumeBackupSource struct {
	// File, such as example/etcd.backup, below `<volume-dir>/<namespace>`. The operator
	// creates directories. On a schedule, names of files begin with it:
	// `<path>_v<revision>_<YYYY-MM-DD-HH:MM:SS>`.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
}
