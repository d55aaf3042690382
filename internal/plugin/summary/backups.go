// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Backup is an EtcdBackup of the cluster, with its newest backup.
type Backup struct {
	Name    string          `json:"name"`
	Phase   api.BackupPhase `json:"phase,omitempty"`
	Storage string          `json:"storageType"`
	// Schedule is empty for a backup that is made once.
	Schedule string `json:"schedule,omitempty"`
	// Taken is when the newest backup was complete; absent where there is none.
	Taken    *time.Time `json:"taken,omitempty"`
	Next     *time.Time `json:"next,omitempty"`
	Revision int64      `json:"revision,omitempty"`
	Size     int64      `json:"size,omitempty"`
	Key      string     `json:"key,omitempty"`
	// Kept is how many backups of the schedule are in the store.
	Kept int32 `json:"kept,omitempty"`
	// Verified is whether the checksum of the newest backup was verified as it was
	// stored, and a quorum had confirmed what is in it.
	Verified bool   `json:"verified"`
	Failing  string `json:"failing,omitempty"`
	// Restored is when a backup was last restored in a test, and Unproved why the last test
	// did not pass.
	Restored *time.Time `json:"restored,omitempty"`
	Unproved string     `json:"unproved,omitempty"`
	// Logged is the newest moment that the log of changes can bring back, and Unlogged why the
	// log does not continue.
	Logged   *time.Time `json:"logged,omitempty"`
	Unlogged string     `json:"unlogged,omitempty"`
}

const (
	// notBegun is said of a log of which the operator has not said anything.
	notBegun = "it has not begun yet"
	// logSilence is how old the end of a log is of which nothing more comes, as the alert
	// EtcdBackupLogBehind has it. The operator reports the end every half a minute, also without
	// changes. Nobody corrects the status of an operator that has ended.
	logSilence = 5 * time.Minute
)

func backups(c *observe.Cluster) []Backup {
	list := []Backup{}
	for i := range c.Backups {
		list = append(list, BackupOf(&c.Backups[i], c.Time))
	}
	return list
}

// BackupOf summarizes an EtcdBackup at a moment.
func BackupOf(b *api.EtcdBackup, now time.Time) Backup {
	st := b.Status
	entry := Backup{
		Name: b.Name, Phase: st.Phase, Storage: string(b.Spec.StorageType), Revision: st.EtcdRevision, Size: st.Size,
		Key: st.Key, Kept: st.Backups, Verified: st.SHA256 != "" && !st.Uncertain,
	}
	entry.Schedule, _ = b.Spec.Schedule()
	if interval := b.Spec.Interval(); entry.Schedule == "" && interval > 0 {
		entry.Schedule = "@every " + interval.String()
	}
	if st.LastSuccessDate != nil {
		entry.Taken = &st.LastSuccessDate.Time
	}
	if st.NextExecutionDate != nil {
		entry.Next = &st.NextExecutionDate.Time
	}
	if !st.Succeeded && st.Reason != "" {
		entry.Failing = st.Reason
	}
	if t := st.RestoreTest; t != nil {
		if t.LastSuccessDate != nil {
			entry.Restored = &t.LastSuccessDate.Time
		}
		if t.Result == api.RestoreTestFailed || t.Result == api.RestoreTestNotDone {
			entry.Unproved = t.Reason
		}
	}
	if l := st.Continuous; l != nil {
		if l.NewestDate != nil {
			entry.Logged = &l.NewestDate.Time
		}
		switch {
		case !l.Recording:
			entry.Unlogged = cmp.Or(l.Reason, notBegun)
		case l.NewestDate != nil && now.Sub(l.NewestDate.Time) > logSilence:
			entry.Unlogged = "the backup operator has reported nothing since " + l.NewestDate.UTC().Format(time.RFC3339) + ": check that it runs"
		}
	} else if b.Spec.Continuous != nil {
		entry.Unlogged = notBegun
	}
	return entry
}
