// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// logLook is the time between two reports of a log in the status.
const logLook = 30 * time.Second

// logOverdue is how old the end of a log may be, at worst of one without changes.
const logOverdue = 150 * time.Second

// logFailures is how many failures in a row are reported: they take eight seconds or more.
const logFailures = 4

// logging is the log of an EtcdBackup. All fields belong to the goroutine of Run.
type logging struct {
	job *loop.Job[logEnd]
	log *changeLog // that the job writes
	// abandoned is the last job, which hangs; nil: it has returned.
	abandoned *abandonedWork
	// failed is why the last job ended, if several have ended and stored nothing. Streams end
	// whenever a member restarts.
	failed error
	// last is why the last job ended; nil once a segment is stored.
	last error
	// since is when the first of the jobs began that follow each other; zero: none runs.
	since   time.Time
	backoff loop.Backoff
	shown   time.Time // when the status was last written
}

// logEnd is how a job ended.
type logEnd struct {
	err       error
	abandoned *abandonedWork
}

func (l *logging) stop(cause error) {
	if l.job != nil {
		l.job.Stop(cause)
	}
}

func (l *logging) wait() {
	if l.job != nil {
		_ = l.job.Wait() // the operator ends
	}
}

// records reports whether an EtcdBackup asks for a log now.
func records(obj *api.EtcdBackup, st *api.BackupStatus) bool {
	return obj.Spec.Continuous != nil && obj.Spec.Periodic() && !obj.Spec.Suspended() && obj.DeletionTimestamp == nil && st.Phase != api.BackupPhaseInvalid
}

// keepLog begins, reports and ends the log beside backups. It returns how long the next look
// may wait.
func (b *Backup) keepLog(ctx context.Context, now time.Time) (time.Duration, error) {
	l := &b.logging
	if l.abandoned.hasReturned() {
		b.log.Info("what the log of changes hung in has returned")
		l.abandoned = nil
	}
	if l.job != nil {
		end, ended := l.job.Result()
		if ended && end.abandoned != nil {
			l.abandoned = end.abandoned
			b.WakeAfter(l.abandoned.returned)
		}
		switch {
		case ended && !errors.Is(end.err, errEdited):
			l.job, l.last, l.shown = nil, end.err, time.Time{} // a way out of a lost quorum reads the status
			if l.backoff.Fail(now); l.backoff.Failures() >= logFailures {
				l.failed = end.err
			}
			b.log.WithError(end.err).Warn("the log of changes ended; it is continued")
		case ended:
			l.job, l.failed, l.last, l.since, l.shown = nil, nil, nil, time.Time{}, time.Time{}
		case !records(b.obj, &b.status) || interrupts(&l.log.obj.Spec, &b.obj.Spec) || !same(l.log.obj.Spec.Continuous, b.obj.Spec.Continuous):
			l.stop(errEdited)
			return loop.LongestSleep, nil // its end wakes the loop
		}
	}
	switch {
	case b.gone || b.obj.DeletionTimestamp != nil:
		return loop.LongestSleep, nil
	case b.obj.Spec.Continuous == nil && b.status.Continuous != nil:
		return loop.LongestSleep, b.write(ctx, false, func(st *api.BackupStatus) { st.Continuous = nil })
	case b.obj.Spec.Continuous == nil:
		return loop.LongestSleep, nil
	}
	wait, due := logLook, false
	if records(b.obj, &b.status) && l.job == nil && l.abandoned == nil {
		wait = l.backoff.Remaining(now)
		due = wait <= 0
	}
	// What a job has stored is on record before the next one begins, which knows nothing of it.
	if err := b.showLog(ctx, now); err != nil {
		return 0, err
	}
	if due {
		if l.since.IsZero() {
			l.since = now
		}
		b.startLog(ctx)
		wait = logLook
	}
	if log := b.status.Continuous; log != nil && log.StartDate != nil && log.StartDate.After(now) {
		wait = min(wait, log.StartDate.Sub(now)) // a backup is due then
	}
	return wait, nil
}

func (b *Backup) startLog(ctx context.Context) {
	log := &changeLog{cfg: &b.cfg, log: b.log, obj: b.obj.DeepCopy(), status: b.status.Continuous.DeepCopy(), wake: b.Wake, failures: b.logging.backoff.Failures()}
	if log.status != nil {
		log.other = log.status.OtherHistory
	}
	if before := b.logging.log; before != nil {
		log.hashed, log.other = before.lastHash(), before.otherHistory()
	}
	log.endUnknown = log.status != nil && log.status.ClusterID != "" && (b.logging.log == nil || b.logging.log.isEndUnknown())
	b.logging.log = log
	b.logging.job = loop.Start(ctx, b.Wake, func(ctx context.Context) logEnd {
		ctx, giveUp := context.WithCancelCause(ctx)
		defer giveUp(nil)
		log.giveUp = giveUp
		err, left := watchdog.Run(ctx, log.cfg.Clock, func() error {
			failure, bug := watchdog.Recover(log.log, func() error { return log.run(ctx) })
			return errors.Join(failure, bug)
		})
		abandoned := abandonedAfter(ctx, left, &log.obj.Spec, holdsLog)
		if cause := context.Cause(ctx); abandoned != nil && errors.Is(cause, errEdited) {
			err = cause
		} else if abandoned != nil {
			err = errors.New(abandoned.reason)
		}
		return logEnd{err, abandoned}
	})
}

// showLog writes what has changed: news at once, progress now and then.
func (b *Backup) showLog(ctx context.Context, now time.Time) error {
	l := &b.logging
	next := api.ContinuousStatus{}
	if b.status.Continuous != nil {
		next = *b.status.Continuous.DeepCopy()
	}
	var begin *logBegin
	stored := next.Recording
	if l.log != nil {
		seen := l.log.seen()
		stored = stored || seen.stored
		if seen.stored {
			l.failed, l.last = nil, nil
			l.backoff.Reset()
		}
		begin = seen.begin
		seen.applyTo(&next)
		next.OtherHistory = l.log.otherHistory()
		if differing := l.log.differs(); differing != nil {
			next.Inconsistency = *differing
		}
	}
	// A segment comes once a minute at the least.
	overdue := !l.since.IsZero() && now.Sub(l.since) > logOverdue && (next.NewestDate == nil || now.Sub(next.NewestDate.Time) > logOverdue)
	next.Recording = !overdue && stored && records(b.obj, &b.status) && l.failed == nil && l.abandoned == nil
	switch {
	case b.obj.Spec.Suspended():
		next.Reason = "spec.backupPolicy.suspend is true: set it to false to record again"
	case b.status.Phase == api.BackupPhaseInvalid:
		next.Reason = "the EtcdBackup is invalid: see status.Reason"
	case l.abandoned != nil:
		next.Reason = l.abandoned.reason
	case l.failed != nil:
		next.Reason = notice.Shorten(l.failed.Error(), 1000)
	case overdue:
		next.Reason = "nothing was stored for more than two minutes"
		if l.last != nil {
			next.Reason += ": " + notice.Shorten(l.last.Error(), 1000)
		}
	default:
		next.Reason = ""
	}
	before := b.status.Continuous
	news := before == nil || begin != nil || before.Recording != next.Recording || before.Reason != next.Reason || before.Inconsistency != next.Inconsistency || before.OtherHistory != next.OtherHistory || !before.StartDate.Equal(next.StartDate)
	if same(before, &next) || !news && now.Sub(l.shown) < logLook {
		return nil
	}
	if err := b.write(ctx, false, func(st *api.BackupStatus) { st.Continuous = &next }); err != nil {
		return err
	}
	l.shown = now
	if begin != nil {
		l.log.told(begin)
		b.notices.logBegan(begin)
	}
	b.notices.logState(&next, now)
	if next.Inconsistency != "" && (before == nil || before.Inconsistency != next.Inconsistency) {
		b.notices.membersDiffer(next.Inconsistency)
	}
	return nil
}

// logBegin is the begin of a log.
type logBegin struct {
	at    time.Time
	first int64
	// gap says what lies between, and why the log before does not continue; "": there was
	// none, or nobody knows of it.
	gap string
}
