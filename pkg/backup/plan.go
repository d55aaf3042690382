// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// verdict is what is to be done about an EtcdBackup at a moment.
type verdict struct {
	// run means that an attempt is due; phase and next are then what to show until
	// it begins.
	run bool
	// window that the attempt is for; zero for a backup that is made once.
	window time.Time
	// base means that the schedule wants none: the log of changes does.
	base bool

	phase  api.BackupPhase
	reason string // of the phases Invalid and Failed
	// next is when the next attempt is due; zero where none is.
	next time.Time
	// done is what to record as the last window that was done.
	done *time.Time
	// digest of the spec. another reports that the status is about one with another
	// digest, where a backup is made once.
	digest  string
	another bool
}

// plan decides by the spec, the status and the time alone. refused says why the
// spec can't be followed where an attempt has found that out, "" otherwise.
func plan(obj *api.EtcdBackup, st *api.BackupStatus, refused string, now time.Time) verdict {
	s, err := scheduleOf(obj)
	switch errs := api.ValidateEtcdBackup(obj); {
	case len(errs) > 0:
		refused = errs.ToAggregate().Error()
	case err != nil:
		refused = err.Error()
	}
	seen := st.ObservedGeneration == obj.Generation
	v := verdict{done: timeOf(st.LastScheduleDate), digest: digestOf(&obj.Spec)}
	v.another = s == nil && st.SpecDigest != "" && st.SpecDigest != v.digest
	var o outlook
	if refused == "" && s != nil {
		o = s.look(v.done, now)
		v.done = o.done
		if o.due.IsZero() && baseDue(obj, st, now) {
			o.due, v.base = now.UTC().Truncate(time.Second), true
		}
	}
	var retry *time.Time
	if seen {
		retry = timeOf(st.NextExecutionDate)
	}
	switch {
	case refused != "":
		v.phase, v.reason = api.BackupPhaseInvalid, untilEdited(refused)
	case s == nil && st.Succeeded && (st.SpecDigest == v.digest || st.Phase == api.BackupPhaseNone):
		// Without a phase it was v0.9.4 that made it.
		v.phase = api.BackupPhaseSucceeded
	case s == nil && gaveUp(obj, st) != "":
		v.phase, v.reason = api.BackupPhaseFailed, gaveUp(obj, st)
	case obj.Spec.Suspended():
		v.phase = api.BackupPhaseSuspended
	case s != nil && o.due.IsZero():
		v.phase, v.next = api.BackupPhaseWaiting, o.next
	case st.Phase == api.BackupPhaseRetrying && retry != nil && retry.After(now) && retry.Sub(now) < 2*longestBackoff:
		// Further away it would be only where the clock was set back.
		v.phase, v.next = api.BackupPhaseRetrying, *retry
	default:
		v.run, v.window = true, o.due
		switch {
		case s != nil:
			v.next = o.due
		case retry != nil:
			v.next = *retry
		default:
			v.next = now
		}
		v.phase = api.BackupPhaseWaiting
		if st.Phase == api.BackupPhaseRetrying || st.Phase == api.BackupPhaseRunning {
			v.phase = api.BackupPhaseRetrying // an attempt before has not made it
		}
	}
	return v
}

// leastBasePause is the least time from a backup that the log does not continue to the next one.
const leastBasePause = time.Minute

// needsBase reports whether the log of changes does not continue the newest backup, so that nothing
// of it can be restored.
func needsBase(obj *api.EtcdBackup, st *api.BackupStatus, now time.Time) bool {
	return hasBegun(obj, st, now) && (predatesLog(st) || endsBeforeLog(st))
}

// baseDue reports whether to make that backup now. While etcd has no quorum, a member may not have
// reached the begin of the log, and another backup would be no better. The log records again with a quorum.
func baseDue(obj *api.EtcdBackup, st *api.BackupStatus, now time.Time) bool {
	if !needsBase(obj, st, now) || !predatesLog(st) && !st.Continuous.Recording {
		return false
	}
	last := st.LastExecutionDate
	return last == nil || !st.Succeeded || now.Sub(last.Time) >= basePause(st)
}

// basePause returns how long to wait from the begin of the last backup on. Each takes room in the store, and
// etcd's time. A writer that runs away makes the log begin again and again, also during a backup for it.
func basePause(st *api.BackupStatus) time.Duration {
	log := st.Continuous
	switch {
	case !predatesLog(st):
		return max(leastBasePause, st.LastExecutionDate.Sub(log.StartDate.Time)) // it doubles
	case log.Gaps == 0 || st.Phase == api.BackupPhaseRunning: // it is the first log, or an operator has ended meanwhile
		return 0
	case st.Duration == nil:
		return leastBasePause
	}
	return max(leastBasePause, 2*st.Duration.Duration)
}

func hasBegun(obj *api.EtcdBackup, st *api.BackupStatus, now time.Time) bool {
	log := st.Continuous
	return obj.Spec.Continuous != nil && log != nil && log.StartDate != nil && !log.StartDate.After(now)
}

// endsBeforeLog reports whether revisions are missing between the newest backup and the log.
func endsBeforeLog(st *api.BackupStatus) bool {
	log := st.Continuous
	return log.ClusterID != "" && st.ClusterID == log.ClusterID && st.EtcdRevision < log.StartRevision-1
}

// predatesLog reports whether the newest backup began before the log.
func predatesLog(st *api.BackupStatus) bool {
	log := st.Continuous
	switch {
	case st.LastSuccessDate == nil:
		return true
	case st.Succeeded && st.LastExecutionDate != nil && st.Phase != api.BackupPhaseRunning: // the last attempt has made it
		return st.LastExecutionDate.Before(log.StartDate)
	case st.Duration == nil:
		return st.LastSuccessDate.Before(log.StartDate)
	}
	// Its begin is not on record any more. Times have whole seconds.
	return st.LastSuccessDate.Add(-st.Duration.Duration).Before(log.StartDate.Time)
}

// unfinished is since when attempts by a spec of the same digest were made that may
// have stored the backup, though the status does not say so; zero: there are none.
func unfinished(st *api.BackupStatus, digest string) time.Time {
	if st.UnfinishedSince == nil || st.SpecDigest != digest {
		return time.Time{}
	}
	return st.UnfinishedSince.UTC()
}

// interrupts reports whether an edit ends what is under way by the spec of before.
func interrupts(before, after *api.BackupSpec) bool {
	b, a := before.DeepCopy(), after.DeepCopy()
	for _, s := range []*api.BackupSpec{b, a} {
		if s.BackupPolicy == nil {
			s.BackupPolicy = &api.BackupPolicy{}
		}
		s.BackupPolicy.Suspend = false // what is under way is finished
		s.RestoreTest = nil            // it is another job
		s.Continuous = nil             // as well
	}
	return !same(b, a)
}

func timeOf(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	moment := t.UTC()
	return &moment
}
