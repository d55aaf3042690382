// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// notices reports what becomes of a backup, in events on the EtcdBackup and
// in the log.
type notices struct {
	notice.Board[*api.EtcdBackup]

	failures    notice.Failures // since the last success
	logFailures notice.Failures // of the log of changes
	// undeleted is why old backups were not deleted, as reported last.
	undeleted string
}

func (n *notices) succeeded(m *storedBackup, failures int32) {
	n.failures = notice.Failures{}
	var more strings.Builder
	if failures > 0 {
		fmt.Fprintf(&more, "; failed attempts before it: %d", failures)
	}
	if m.found {
		more.WriteString("; it was stored by an attempt before, which could not report it")
	}
	if m.uncertain {
		more.WriteString("; etcd has no quorum: writes that only members hold which don't answer are not in it, and older backups that hold all are kept")
	}
	n.Normal("Backup Succeeded", "Stored revision %d of etcd %s from %s as %s (%s in %s)%s",
		m.revision, m.version, m.endpoint, m.place, notice.Bytes(m.size), m.duration.Round(time.Millisecond), more.String())
}

// wentBack reports that backups of a schedule hold less than they did.
func (n *notices) wentBack(revision, before int64) {
	n.Warning("Revision Lower", "etcd is at revision %d, and the backup before holds %d: it was restored, or is another cluster, or was lost and recreated; older backups may hold what is lost, and maxBackups and maxAgeInSecond delete them in time, but for the newest one of each of the last three clusters and the one of the highest revision: copy those that you need, or set spec.backupPolicy.suspend to true", revision, before)
}

// clusterChanged reports that backups of a schedule hold the data of another cluster, which is at no lower
// revision.
func (n *notices) clusterChanged(id, before string) {
	n.Warning("Cluster Changed", "the backup comes from the etcd cluster with ID %s, and the one before from %s: it was restored, or is another cluster, or was lost and recreated; older backups may hold what is lost, and maxBackups and maxAgeInSecond delete them in time, but for the newest one of each of the last three clusters: copy those that you need, or set spec.backupPolicy.suspend to true", id, before)
}

// failed reports the first failure in a row, and others now and then.
func (n *notices) failed(reason string, failures int32, now time.Time) {
	if !n.failures.News(reason, now) {
		n.Log.WithField("failures", failures).Warn("the backup failed again: " + reason)
		return
	}
	n.Warning("Backup Failed", "%s", reason)
}

func (n *notices) interrupted(why string) { n.Log.Info("the backup under way was stopped: " + why) }

// phaseChanged reports what begins and ends by an edit.
func (n *notices) phaseChanged(before api.BackupPhase, st *api.BackupStatus) {
	switch {
	case st.Phase == before:
	case st.Phase == api.BackupPhaseInvalid:
		n.Warning("Backup Invalid", "%s", st.Reason)
	case st.Phase == api.BackupPhaseFailed:
		n.Warning("Backup Failed", "%s", st.Reason)
	case st.Phase == api.BackupPhaseSuspended:
		n.Normal("Backup Suspended", "spec.backupPolicy.suspend is true: no backup is begun")
	case before == api.BackupPhaseSuspended:
		n.Normal("Backup Resumed", "spec.backupPolicy.suspend is false: backups continue")
	}
}

// tidied shows what tidying has done.
func (n *notices) tidied(t tidied) {
	if len(t.deleted) > 0 {
		n.Normal("Old Backups Deleted", "Deleted %d, and %d are left: %s", len(t.deleted), t.left, strings.Join(t.deleted, ", "))
	}
	why := ""
	if t.err != nil {
		why = t.err.Error()
	}
	if why != "" && why != n.undeleted {
		n.Warning("Old Backups Not Deleted", "%s; it is tried again after the next backup", why)
	}
	n.undeleted = why
}

// tested reports the result of a test.
func (n *notices) tested(r *testResult) {
	what := r.key
	if p := r.point; p.revision > 0 {
		what = fmt.Sprintf("%s and the log of changes, at revision %d, which seed %d chose from %d to %d", cmp.Or(r.from, "a backup"), p.revision, p.seed, p.low, p.high)
	}
	switch r.result {
	case api.RestoreTestPassed:
		n.Normal("Restore Test Passed", "Restored %s: revision %d, %d keys (%s)", what, r.revision, r.keys, r.took.Round(time.Second))
	case api.RestoreTestFailed:
		n.Warning("Restore Test Failed", "%s: %s", what, r.reason)
	default:
		n.Warning("Restore Test Not Done", "%s: %s; it is tried again in %s", what, r.reason, notDonePause)
	}
}

func (n *notices) logBegan(b *logBegin) {
	if b.gap == "" {
		n.Normal("Log Begun", "The log of changes begins with revision %d", b.first)
		return
	}
	n.Warning("Log Gap", "The log of changes begins again with revision %d; it has a gap: %s; what a backup holds of it can be restored", b.first, b.gap)
}

func (n *notices) logState(st *api.ContinuousStatus, now time.Time) {
	switch {
	case st.Recording:
		n.logFailures = notice.Failures{}
	case st.Reason != "" && n.logFailures.News(st.Reason, now):
		n.Warning("Log Behind", "The changes of etcd are not recorded: %s", st.Reason)
	}
}

// membersDiffer reports that etcd's data are damaged in a member.
func (n *notices) membersDiffer(which string) {
	n.Warning("Members Differ", "%s: one of them has lost or changed data, and backups may come from it; replace the member that differs from the majority (kubectl etcd replace MEMBER --with-volume), or restore a backup from before", which)
}
