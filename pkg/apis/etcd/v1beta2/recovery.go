// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"
	"strings"
)

const (
	// RecoverAnnotation on an EtcdCluster without a quorum is the way out that a person
	// chooses: survivor=MEMBER, survivor=MEMBER,store=ETCDBACKUP, or backup=ETCDBACKUP.
	RecoverAnnotation = OperatorAnnotations + "recover"
	// RecoveryAnnotation on an EtcdRestore is the startDate of the choice that it follows. The
	// restore begins only while the EtcdCluster still has that choice.
	RecoveryAnnotation = OperatorAnnotations + "recovery"
)

// RecoveryStatus is what is left of a cluster without a quorum. The operator writes
// changes of the ways at most every 20 seconds.
type RecoveryStatus struct {
	// Highest revision that a quorum is known to have committed; 0 if unknown. Later
	// revisions may have been committed too.
	// +optional
	LastRevision int64 `json:"lastRevision,omitempty"`

	// Ways out: first the return of the members, then the survivors and the backups
	// with the highest revisions. At most 20.
	// +optional
	// +listType=atomic
	Ways []RecoveryWay `json:"ways,omitempty"`

	// Way out that a person has chosen with the annotation
	// `etcd.database.coreos.com/recover`; absent without one.
	// +optional
	Choice *RecoveryChoice `json:"choice,omitempty"`

	// Time of the last write of the ways (RFC 3339, UTC).
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
}

// RecoveryWayKind is a kind of way out.
type RecoveryWayKind string

// The kinds of ways out.
const (
	// RecoveryReturn is the return of missing members with their data.
	RecoveryReturn RecoveryWayKind = "Return"
	// RecoverySurvivor continues from the data of a member that still runs.
	RecoverySurvivor RecoveryWayKind = "Survivor"
	// RecoveryBackup restores the newest backup of an EtcdBackup.
	RecoveryBackup RecoveryWayKind = "Backup"
)

// RecoveryWay is a way out of a lost quorum.
type RecoveryWay struct {
	// Return: the missing members come back with their data. Survivor: the cluster
	// continues from the data of a member. Backup: the cluster continues from a backup.
	Way RecoveryWayKind `json:"way"`

	// Member whose data the cluster continues from.
	// +optional
	Member string `json:"member,omitempty"`

	// EtcdBackup whose newest backup the cluster continues from.
	// +optional
	Backup string `json:"backup,omitempty"`

	// Revision that the cluster continues from.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Raft term of the member.
	// +optional
	RaftTerm int64 `json:"raftTerm,omitempty"`

	// Raft index that the member knows as committed.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// Time of the backup (RFC 3339, UTC).
	// +optional
	Time string `json:"time,omitempty"`

	// Loss on this way.
	Message string `json:"message"`
}

// RecoveryPhase is the progress of a chosen way out.
type RecoveryPhase string

// The phases of a chosen way out. The cluster is untouched until the EtcdRestore is Stopping.
const (
	// RecoveryRefused means that the operator cannot take the way now. It examines the way
	// again.
	RecoveryRefused RecoveryPhase = "Refused"
	// RecoveryBackingUp means that the backup operator stores the data of the survivor.
	RecoveryBackingUp RecoveryPhase = "BackingUp"
	// RecoveryRestoring means that the restore operator replaces the cluster.
	RecoveryRestoring RecoveryPhase = "Restoring"
	// RecoveryFailed means that the operator gave up the way, until a person removes the
	// annotation and sets it again.
	RecoveryFailed RecoveryPhase = "Failed"
)

// RecoveryChoice is the way out that a person has chosen.
type RecoveryChoice struct {
	// Value of the annotation.
	Value string `json:"value"`

	// Refused: the operator cannot take the way now. BackingUp: the backup operator stores
	// the data of the survivor. Restoring: an EtcdRestore replaces the cluster. Failed:
	// the operator gave up the way; to try once more, remove the annotation and set it
	// again.
	Phase RecoveryPhase `json:"phase"`

	// Cause of the phase, or the event that the operator waits for.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Time at which the operator began to follow the choice (RFC 3339, UTC).
	// +optional
	StartDate string `json:"startDate,omitempty"`

	// Revision that the cluster continues from.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// EtcdBackup with that revision.
	// +optional
	Backup string `json:"backup,omitempty"`
}

// ChosenWay is the value of RecoverAnnotation.
type ChosenWay struct {
	// Member is the survivor, and Store the EtcdBackup whose store takes its data; "": the
	// only one of the cluster.
	Member, Store string
	// Backup is the EtcdBackup to restore.
	Backup string
}

// ParseChosenWay reads the value of RecoverAnnotation.
func ParseChosenWay(value string) (ChosenWay, error) {
	var way ChosenWay
	for part := range strings.SplitSeq(value, ",") {
		key, name, _ := strings.Cut(strings.TrimSpace(part), "=")
		field := map[string]*string{"survivor": &way.Member, "store": &way.Store, "backup": &way.Backup}[key]
		if field == nil || name == "" || *field != "" {
			return ChosenWay{}, fmt.Errorf("%q is no way out: use survivor=MEMBER, survivor=MEMBER,store=ETCDBACKUP or backup=ETCDBACKUP", value)
		}
		*field = name
	}
	if (way.Member == "") == (way.Backup == "") || way.Store != "" && way.Member == "" {
		return ChosenWay{}, fmt.Errorf("%q is no way out: use survivor=MEMBER, survivor=MEMBER,store=ETCDBACKUP or backup=ETCDBACKUP", value)
	}
	return way, nil
}
