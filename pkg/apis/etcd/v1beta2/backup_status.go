// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupPeriodicFinalizer keeps an EtcdBackup with a schedule, under deletion,
// until its backup under way has been stopped.
const BackupPeriodicFinalizer = "backup-operator-periodic"

// BackupReplaceAnnotation with the value "true" lets an EtcdBackup that is made once
// replace an object that another EtcdBackup has stored and whose revision is higher.
const BackupReplaceAnnotation = "etcd.database.coreos.com/replace"

// BackupPhase is what the backup operator does about an EtcdBackup now.
type BackupPhase string

// The phases of a backup. None is final.
const (
	// BackupPhaseNone is a backup that no operator has seen yet.
	BackupPhaseNone BackupPhase = ""
	// BackupPhaseWaiting is a backup whose next run is not due.
	BackupPhaseWaiting BackupPhase = "Waiting"
	// BackupPhaseRunning is a backup that is being made.
	BackupPhaseRunning BackupPhase = "Running"
	// BackupPhaseRetrying is a backup whose last attempt failed; the next one is
	// at nextExecutionDate.
	BackupPhaseRetrying BackupPhase = "Retrying"
	// BackupPhaseSucceeded is a backup that was to be made once, and is made.
	BackupPhaseSucceeded BackupPhase = "Succeeded"
	// BackupPhaseSuspended is a schedule that spec.backupPolicy.suspend stops.
	BackupPhaseSuspended BackupPhase = "Suspended"
	// BackupPhaseInvalid is a spec that can't be followed until it is edited.
	BackupPhaseInvalid BackupPhase = "Invalid"
	// BackupPhaseFailed is a backup that was to be made once and that v0.9.4 gave
	// up. It is left alone until it is edited.
	BackupPhaseFailed BackupPhase = "Failed"
)

// BackupStatus is what became of an EtcdBackup.
type BackupStatus struct {
	// Generation of the spec that the rest of the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// What the backup operator does now: empty (not seen by an operator yet),
	// Waiting, Running, Retrying, Succeeded, Suspended, Invalid or Failed.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`

	// Whether the last attempt that ended made a backup.
	// +optional
	Succeeded bool `json:"succeeded"`

	// Why the last attempt failed, and what to do.
	// +optional
	Reason string `json:"Reason,omitempty"`

	// Version of etcd that the newest backup was taken from.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// Revision of etcd's data when the newest backup was begun. All writes up to
	// it are in the backup; a few later ones may be.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// When the newest backup was complete.
	// +optional
	LastSuccessDate *metav1.Time `json:"lastSuccessDate,omitempty"`

	// When the last attempt began.
	// +optional
	LastExecutionDate *metav1.Time `json:"lastExecutionDate,omitempty"`

	// Since when attempts have been made that may have stored a backup which this
	// status does not tell of: the operator died, or the store's answer was lost.
	// The next attempt looks for it. Absent where there can be none.
	// +optional
	UnfinishedSince *metav1.Time `json:"unfinishedSince,omitempty"`

	// Digest of what the spec said, when the last attempt began, of what is backed
	// up, where to and on which schedule. A backup that was made once is made again
	// when it changes. Edits of suspend, timeoutInSecond, maxBackups and
	// maxAgeInSecond leave it as it is.
	// +optional
	SpecDigest string `json:"specDigest,omitempty"`

	// The time of the schedule that the last backup was made for. The next ones
	// follow from it.
	// +optional
	LastScheduleDate *metav1.Time `json:"lastScheduleDate,omitempty"`

	// When the next attempt is due; absent where none is.
	// +optional
	NextExecutionDate *metav1.Time `json:"nextExecutionDate,omitempty"`

	// How many attempts have failed since the last success.
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// Where the newest backup is: bucket and key.
	// +optional
	Key string `json:"key,omitempty"`

	// Size of the newest backup in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`

	// Whether the newest backup was taken while etcd had no quorum: writes that only
	// members hold which did not answer are missing in it.
	// +optional
	Uncertain bool `json:"uncertain,omitempty"`

	// SHA-256 of the newest backup's content, in hexadecimal digits.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// How long the newest backup took.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// Client URL of the member that the newest backup was taken from.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// How many backups that this EtcdBackup made on its schedule were in the store
	// after the last one.
	// +optional
	Backups int32 `json:"backups,omitempty"`
}
