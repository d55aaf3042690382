// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupPeriodicFinalizer delays the deletion of an EtcdBackup with a schedule until
// the operator has stopped its current attempt.
const BackupPeriodicFinalizer = "backup-operator-periodic"

// BackupReplaceAnnotation with the value "true" lets an EtcdBackup without a schedule
// replace a backup with a higher revision.
const BackupReplaceAnnotation = "etcd.database.coreos.com/replace"

// BackupPhase is the current activity for an EtcdBackup.
type BackupPhase string

// The phases of a backup. None is final.
const (
	// BackupPhaseNone means that no operator has seen the EtcdBackup yet.
	BackupPhaseNone BackupPhase = ""
	// BackupPhaseWaiting means that the next attempt is not due. Or it is due and
	// waits, because eight other attempts run, or four in its namespace.
	BackupPhaseWaiting BackupPhase = "Waiting"
	// BackupPhaseRunning means that an attempt runs.
	BackupPhaseRunning BackupPhase = "Running"
	// BackupPhaseRetrying means that the last attempt failed, or ended with its
	// operator. The next attempt begins at `nextExecutionDate`.
	BackupPhaseRetrying BackupPhase = "Retrying"
	// BackupPhaseSucceeded means that the backup is complete. An EtcdBackup with a
	// schedule never has this phase.
	BackupPhaseSucceeded BackupPhase = "Succeeded"
	// BackupPhaseSuspended means that `spec.backupPolicy.suspend` stops backups.
	BackupPhaseSuspended BackupPhase = "Suspended"
	// BackupPhaseInvalid means that the operator cannot follow the spec until an
	// edit. `Reason` states why.
	BackupPhaseInvalid BackupPhase = "Invalid"
	// BackupPhaseFailed means that release v0.9.4 gave up this EtcdBackup without a
	// schedule. An edit of the spec starts another attempt.
	BackupPhaseFailed BackupPhase = "Failed"
)

// BackupStatus is the result of an EtcdBackup.
type BackupStatus struct {
	// Generation of the spec that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Current activity: empty (no operator has seen the object), Waiting, Running,
	// Retrying, Succeeded, Suspended, Invalid or Failed.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`

	// True if the last finished attempt made a backup. False during the first
	// attempt, for an invalid spec, and until the operator has followed an edit of an
	// EtcdBackup without a schedule.
	// +optional
	Succeeded bool `json:"succeeded"`

	// Why the last attempt failed, or what is wrong with the spec, and what to do.
	// Empty after a success.
	// +optional
	Reason string `json:"Reason,omitempty"`

	// Ready: the backup is complete, or the operator follows the schedule.
	// Reconciling: the operator works towards that. Stalled: the operator needs help
	// from a person.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Version of the etcd that the newest backup comes from.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// Revision of etcd's data at the start of the newest backup. The backup
	// contains all writes up to this revision, and possibly a few later ones.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// ID of the etcd cluster that the newest backup comes from, in 16 hexadecimal
	// digits. Absent if unknown, as in backups of earlier operators.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Raft entries that the newest backup contains at the least. Leases, users and
	// roles raise it, and no revision. 0 if unknown.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// Raft entries after these that the newest backup contains at the most: those in the
	// log of the member. A restore applies them, and each raises the revision by one, or
	// not at all. Absent if a quorum has confirmed the backup, or if unknown.
	// +optional
	UnappliedEntries *int64 `json:"unappliedEntries,omitempty"`

	// Completion time of the newest backup.
	// +optional
	LastSuccessDate *metav1.Time `json:"lastSuccessDate,omitempty"`

	// Start time of the last attempt.
	// +optional
	LastExecutionDate *metav1.Time `json:"lastExecutionDate,omitempty"`

	// Start of the attempts that may have stored a backup without a record in this
	// status: the operator died, or the store's answer was lost. The next attempt
	// searches for that backup. Absent if none is possible.
	// +optional
	UnfinishedSince *metav1.Time `json:"unfinishedSince,omitempty"`

	// Digest of the source, the destination and the schedule in the spec, at the
	// start of the last attempt. When it changes, the operator repeats an EtcdBackup
	// without a schedule. It does not cover suspend, timeoutInSecond, maxBackups and
	// maxAgeInSecond.
	// +optional
	SpecDigest string `json:"specDigest,omitempty"`

	// Scheduled time of the last backup. The next times follow from it.
	// +optional
	LastScheduleDate *metav1.Time `json:"lastScheduleDate,omitempty"`

	// Due time of the next attempt; absent if none is due.
	// +optional
	NextExecutionDate *metav1.Time `json:"nextExecutionDate,omitempty"`

	// Number of failed attempts since the last success.
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// Location of the newest backup: bucket and key, or the path on a volume.
	// +optional
	Key string `json:"key,omitempty"`

	// Size of the newest backup in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`

	// True if the newest backup comes from a time without a quorum. It lacks writes
	// that only unreachable members have.
	// +optional
	Uncertain bool `json:"uncertain,omitempty"`

	// SHA-256 of the newest backup's content, in hexadecimal digits.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// Duration of the newest backup, from the start of its attempt.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// Client URL of the member that the newest backup comes from.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Number of backups from this schedule in the store, after the last backup.
	// +optional
	Backups int32 `json:"backups,omitempty"`

	// Tests of backups by restoring them. Absent without `spec.restoreTest`, and before
	// the first test.
	// +optional
	RestoreTest *RestoreTestStatus `json:"restoreTest,omitempty"`

	// Log of all changes. Absent without `spec.continuous`.
	// +optional
	Continuous *ContinuousStatus `json:"continuous,omitempty"`
}

// ContinuousStatus is the state of the log of changes. The operator writes it twice a minute
// at most.
type ContinuousStatus struct {
	// True while the operator receives the changes of etcd. It stays true if the backup
	// operator itself stops: newestDate is then older than five minutes.
	// +optional
	Recording bool `json:"recording,omitempty"`

	// Why the operator does not record, and what to do. Empty while it records.
	// +optional
	Reason string `json:"reason,omitempty"`

	// ID of the etcd cluster, in hexadecimal digits. The keys of the log contain it.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Begin of the log without a gap. The operator makes a backup after it, also outside
	// of the schedule. Every moment from the end of that backup on can be restored.
	// +optional
	StartDate *metav1.Time `json:"startDate,omitempty"`

	// First revision of the log without a gap.
	// +optional
	StartRevision int64 `json:"startRevision,omitempty"`

	// Newest moment that can be restored. While etcd does not change, it may be a minute
	// old.
	// +optional
	NewestDate *metav1.Time `json:"newestDate,omitempty"`

	// Newest revision that can be restored.
	// +optional
	NewestRevision int64 `json:"newestRevision,omitempty"`

	// Number of times that the log began again because it could not continue: revisions
	// between can be restored only if a backup holds them.
	// +optional
	Gaps int32 `json:"gaps,omitempty"`

	// The last gap: its revisions, and why the log could not continue.
	// +optional
	LastGap string `json:"lastGap,omitempty"`

	// End of a log in the store that has the same cluster ID and another history: the
	// members have other data now. The operator does not write to this log. It records
	// again after you name another path in the spec. Absent without such a log.
	// +optional
	OtherHistory string `json:"otherHistory,omitempty"`

	// Which members of etcd have other keys than others, by the last comparison of their
	// hashes. One of them has lost or changed data, and backups may come from it. Replace
	// the member that differs from the majority. Empty if the hashes were equal.
	// +optional
	Inconsistency string `json:"inconsistency,omitempty"`
}

// RestoreTestResult is the result of a test.
type RestoreTestResult string

// The results of a test.
const (
	// RestoreTestRunning means that a test runs.
	RestoreTestRunning RestoreTestResult = "Running"
	// RestoreTestPassed means that the backup was restored, and that its data is as
	// expected.
	RestoreTestPassed RestoreTestResult = "Passed"
	// RestoreTestFailed means that the backup cannot be restored, or that its data is
	// not as expected. The next test is that of the next backup.
	RestoreTestFailed RestoreTestResult = "Failed"
	// RestoreTestNotDone means that something prevented the test, so nothing is known
	// of the backup. The operator tries again.
	RestoreTestNotDone RestoreTestResult = "NotDone"
)

// RestoreTestStatus is the state of the tests of backups.
type RestoreTestStatus struct {
	// Result of the last test: Running, Passed, Failed or NotDone.
	Result RestoreTestResult `json:"result"`

	// Why the last test did not pass, and what to do; or what a running one waits for.
	// Empty after a success.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Location of the backup that the last test restored. With `spec.continuous`, that of
	// the newest backup at the start of the test.
	// +optional
	Key string `json:"key,omitempty"`

	// Revision that the last test restored from a backup and the log of changes, chosen
	// at random among those that can be restored. Absent without `spec.continuous`.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Seed of the random choice of `revision`.
	// +optional
	Seed int64 `json:"seed,omitempty"`

	// Start of the last test.
	// +optional
	StartDate *metav1.Time `json:"startDate,omitempty"`

	// Duration of the last test.
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// End of the last test that passed.
	// +optional
	LastSuccessDate *metav1.Time `json:"lastSuccessDate,omitempty"`

	// Location of the backup of the last test that passed.
	// +optional
	LastSuccessKey string `json:"lastSuccessKey,omitempty"`

	// Revision of etcd's data in the last test that passed.
	// +optional
	EtcdRevision int64 `json:"etcdRevision,omitempty"`

	// Number of keys in the last test that passed.
	// +optional
	Keys int64 `json:"keys,omitempty"`
}
