// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// failurePause passes between two events about attempts that fail, after the first
// of a row, even where their reasons differ: addresses and ports in them do.
const failurePause = 10 * time.Minute

// notices tells people what becomes of a backup, in events on the EtcdBackup and
// in the log.
type notices struct {
	recorder record.EventRecorder
	log      *logrus.Entry
	obj      *api.EtcdBackup

	failure   string // that was told last; "" after a success
	failureAt time.Time
	// undeleted is why old backups were not deleted, as told last.
	undeleted string
}

func (n *notices) normal(reason, format string, args ...any) {
	n.tell(corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...))
}

func (n *notices) warning(reason, format string, args ...any) {
	n.tell(corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...))
}

func (n *notices) tell(kind, reason, message string) {
	// The API server keeps at most 1024 bytes of an event's message.
	n.recorder.Event(n.obj, kind, reason, shorten(message, 1000))
	n.log.WithField("event", reason).Info(message)
}

func (n *notices) succeeded(m *made, failures int32) {
	n.failure, n.failureAt = "", time.Time{}
	var more strings.Builder
	if failures > 0 {
		fmt.Fprintf(&more, "; failed attempts before it: %d", failures)
	}
	if m.found {
		more.WriteString("; it was stored by an attempt before, which did not get to tell")
	}
	if m.uncertain {
		more.WriteString("; etcd has no quorum: writes that only members hold which don't answer are not in it, and older backups that hold all are kept")
	}
	n.normal("Backup Succeeded", "Stored revision %d of etcd %s from %s as %s (%s in %s)%s",
		m.revision, m.version, m.endpoint, m.place, bytesText(m.size), m.duration.Round(time.Millisecond), more.String())
}

// wentBack tells that backups of a schedule hold less than they did.
func (n *notices) wentBack(revision, before int64) {
	n.warning("Revision Lower", "etcd is at revision %d, and the backup before holds %d: it was restored, or is another cluster, or was lost and made anew; older backups may hold what is lost, and maxBackups deletes all of them in time but the one of the highest revision: copy those that you need, or set spec.backupPolicy.suspend to true", revision, before)
}

// failed tells of the first failure in a row, and of others now and then.
func (n *notices) failed(reason string, failures int32, now time.Time) {
	pause := now.Sub(n.failureAt)
	if n.failure != "" && (reason == n.failure || pause >= 0 && pause < failurePause) {
		n.log.WithField("failures", failures).Warn("the backup failed again: " + reason)
		return
	}
	n.failure, n.failureAt = reason, now
	n.warning("Backup Failed", "%s", reason)
}

func (n *notices) interrupted(why string) { n.log.Info("the backup under way was stopped: " + why) }

// phaseChanged tells of what begins and ends by an edit.
func (n *notices) phaseChanged(before api.BackupPhase, st *api.BackupStatus) {
	switch {
	case st.Phase == before:
	case st.Phase == api.BackupPhaseInvalid:
		n.warning("Backup Invalid", "%s", st.Reason)
	case st.Phase == api.BackupPhaseFailed:
		n.warning("Backup Failed", "%s", st.Reason)
	case st.Phase == api.BackupPhaseSuspended:
		n.normal("Backup Suspended", "spec.backupPolicy.suspend is true: no backup is begun")
	case before == api.BackupPhaseSuspended:
		n.normal("Backup Resumed", "spec.backupPolicy.suspend is false: backups are made again")
	}
}

// tidied tells what tidying has done.
func (n *notices) tidied(t tidied) {
	if len(t.deleted) > 0 {
		n.normal("Old Backups Deleted", "Deleted %d, and %d are left: %s", len(t.deleted), t.left, strings.Join(t.deleted, ", "))
	}
	why := ""
	if t.err != nil {
		why = t.err.Error()
	}
	if why != "" && why != n.undeleted {
		n.warning("Old Backups Not Deleted", "%s; it is tried again after the next backup", why)
	}
	n.undeleted = why
}

// shorten bounds a text in bytes.
func shorten(text string, limit int) string {
	const end = "…"
	if len(text) <= limit {
		return text
	}
	cut := limit - len(end)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + end
}
