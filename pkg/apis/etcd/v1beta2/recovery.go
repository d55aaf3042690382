// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// RecoverAnnotation on an EtcdCluster without a quorum is the way out that a person
	// chooses: survivor=MEMBER, survivor=MEMBER,store=ETCDBACKUP, or backup=ETCDBACKUP.
	RecoverAnnotation = OperatorAnnotations + "recover"
	// SurvivorAnnotation on an EtcdBackup names the member whose data is stored. Without it, the
	// backup operator chooses one.
	SurvivorAnnotation = OperatorAnnotations + "survivor"
	// RecoveryAnnotation on an EtcdRestore is the startDate of the choice that it follows. The
	// restore begins only while the EtcdCluster still has that choice.
	RecoveryAnnotation = OperatorAnnotations + "recovery"
)

// RecoveryMode is who chooses the way out of a lost quorum.
type RecoveryMode string

// The modes of a recovery.
const (
	// RecoveryManual means that a person chooses.
	RecoveryManual RecoveryMode = "Manual"
	// RecoveryAutomatic means that the operator chooses if no person does.
	RecoveryAutomatic RecoveryMode = "Automatic"
)

// RecoveryPolicy says what happens after the cluster has lost its quorum.
type RecoveryPolicy struct {
	// Manual: a person chooses a way out with the annotation
	// `etcd.database.coreos.com/recover`. Automatic: the operator also takes one without a
	// person, if too few members for a quorum can return. The loss must be within
	// maxLostRevisions and maxLostInSecond. The annotation comes first in both modes.
	// Default: Manual.
	// +optional
	// +kubebuilder:validation:Enum=Manual;Automatic
	Mode RecoveryMode `json:"mode,omitempty"`

	// Time in seconds from the loss of the quorum to the automatic recovery. At least 60.
	// At most 604800. Default: 600.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	PatienceInSecond *int64 `json:"patienceInSecond,omitempty"`

	// Number of revisions that a quorum is known to have committed and that the automatic
	// recovery may lose. Writes after the operator last saw a quorum are not in this number:
	// maxLostInSecond bounds them. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxLostRevisions int64 `json:"maxLostRevisions,omitempty"`

	// Time in seconds before the loss of the quorum whose writes may be unknown. The
	// automatic recovery acts only if the operator has seen a quorum within this time. It
	// takes a backup only if it began, or its log of changes ends, within this time. At
	// least 60. At most 31536000. Default: 120.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	MaxLostInSecond *int64 `json:"maxLostInSecond,omitempty"`
}

// RecoveryStatus is what is left of a cluster without a quorum. The operator writes
// changes of the ways at most every 20 seconds, and lastUpdateTime every minute.
type RecoveryStatus struct {
	// Highest revision that a quorum is known to have committed; 0 if unknown. Later
	// revisions may have been committed too.
	// +optional
	LastRevision int64 `json:"lastRevision,omitempty"`

	// Time at which the operator first saw no quorum (RFC 3339, UTC). After two minutes
	// without a look of any operator, the loss counts from the next look on. While a majority
	// of the pods is ready and does not answer the operator, the loss begins again each minute.
	// +optional
	LostDate string `json:"lostDate,omitempty"`

	// Time at which the operator last saw a quorum, as far as it knows (RFC 3339, UTC).
	// Nobody knows how many writes came after it.
	// +optional
	LastQuorumDate string `json:"lastQuorumDate,omitempty"`

	// Ways out: first the return of the members, then the survivors and the backups
	// with the highest revisions. At most 20.
	// +optional
	// +listType=atomic
	Ways []RecoveryWay `json:"ways,omitempty"`

	// Way out that a person has chosen with the annotation
	// `etcd.database.coreos.com/recover`, or that the automatic recovery takes; absent
	// without one.
	// +optional
	Choice *RecoveryChoice `json:"choice,omitempty"`

	// Plan of the automatic recovery; absent in the mode Manual, and once choice has a way
	// that the automatic recovery takes.
	// +optional
	Automatic *AutomaticRecovery `json:"automatic,omitempty"`

	// Time of the last write of the ways (RFC 3339, UTC). The operator renews it every
	// minute while there is no quorum.
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

	// Revision that the cluster continues from, at the least. The log of a survivor may hold
	// later ones, which are restored too.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Raft term of the member.
	// +optional
	RaftTerm int64 `json:"raftTerm,omitempty"`

	// Raft index that the member knows as committed.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// The member has started without a quorum, and etcd serves no clients then. Only a choice by
	// the annotation leads on: a container in the member's pod then serves its data.
	// +optional
	NotServing bool `json:"notServing,omitempty"`

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

// AutomaticPhase is what the automatic recovery is about to do.
type AutomaticPhase string

// The phases of an automatic recovery before it acts.
const (
	// AutomaticWaiting means that the patience runs.
	AutomaticWaiting AutomaticPhase = "Waiting"
	// AutomaticBlocked means that the operator does not act as things are.
	AutomaticBlocked AutomaticPhase = "Blocked"
	// AutomaticYielded means that a person has chosen a way out since the loss of the quorum.
	// The operator leaves this loss to the person.
	AutomaticYielded AutomaticPhase = "Yielded"
)

// AutomaticRecovery is what the automatic recovery is about to do.
type AutomaticRecovery struct {
	// Waiting: the operator takes the way `value` at `time`. Blocked: the operator does not
	// act; the message says why, and what a person can do. Yielded: a person has set the
	// annotation `etcd.database.coreos.com/recover` since the loss of the quorum, so the
	// operator does not act until a quorum is back.
	Phase AutomaticPhase `json:"phase"`

	// Way out that the operator takes, in the form of the annotation
	// `etcd.database.coreos.com/recover`; empty if it takes none.
	// +optional
	Value string `json:"value,omitempty"`

	// Time at which the operator takes it at the earliest (RFC 3339, UTC).
	// +optional
	Time string `json:"time,omitempty"`

	// Next act of the operator and its loss, or the reason why it does not act.
	Message string `json:"message"`
}

// RecoveryChoice is the way out that a person or the automatic recovery has chosen.
type RecoveryChoice struct {
	// Value of the annotation, or what a person would write there.
	Value string `json:"value"`

	// True if the automatic recovery has chosen the way, and no person.
	// +optional
	Automatic bool `json:"automatic,omitempty"`

	// Refused: the operator cannot take the way now. BackingUp: the backup operator stores
	// the data of the survivor. Restoring: an EtcdRestore replaces the cluster. Failed:
	// the operator gave up the way; to try once more, set the annotation, or remove it and
	// set it again.
	Phase RecoveryPhase `json:"phase"`

	// Cause of the phase, or the event that the operator waits for.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Time at which the operator began to follow the choice (RFC 3339, UTC).
	// +optional
	StartDate string `json:"startDate,omitempty"`

	// Revision that the cluster continues from, at the least: see highestRevision.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Raft entries that the survivor had applied at the choice. Its backup must contain
	// them: leases, users and roles raise no revision. 0 if the way is a backup.
	// +optional
	RaftIndex int64 `json:"raftIndex,omitempty"`

	// Highest revision that the cluster may continue from. Each entry in the log of the
	// survivor that it has not applied raises the revision by one, or not at all. Absent
	// before the data of a survivor is stored, and if the way is a backup.
	// +optional
	HighestRevision int64 `json:"highestRevision,omitempty"`

	// Revisions that are restored, and the loss. Absent before the restore.
	// +optional
	Message string `json:"message,omitempty"`

	// EtcdBackup with that revision.
	// +optional
	Backup string `json:"backup,omitempty"`

	// UID of the EtcdRestore, once it exists. If somebody deletes it before it has
	// changed anything, the choice is Failed.
	// +optional
	RestoreUID types.UID `json:"restoreUID,omitempty"`
}

// ChosenWay is the value of RecoverAnnotation.
type ChosenWay struct {
	// Member is the survivor, and Store the EtcdBackup whose store takes its data; "": the
	// only one of the cluster.
	Member, Store string
	// Backup is the EtcdBackup to restore.
	Backup string
}

// String is the value of RecoverAnnotation.
func (w ChosenWay) String() string {
	switch {
	case w.Backup != "":
		return "backup=" + w.Backup
	case w.Store != "":
		return "survivor=" + w.Member + ",store=" + w.Store
	}
	return "survivor=" + w.Member
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
