// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// The rules of the status: what each moment in the life of a backup changes in it.

// settle shows what is so while nothing runs.
func settle(st *api.BackupStatus, v verdict, generation int64) {
	if v.phase != st.Phase && (st.Phase == api.BackupPhaseInvalid || st.Phase == api.BackupPhaseFailed) {
		st.Reason = ""
	}
	switch v.phase {
	case api.BackupPhaseInvalid, api.BackupPhaseFailed:
		// To those who wait for a backup it has failed.
		st.Succeeded, st.Reason = false, v.reason
	case api.BackupPhaseSucceeded:
		st.SpecDigest = v.digest // v0.9.4 did not record it
	}
	if v.another {
		st.Succeeded = false // that was about another backup
	}
	st.ObservedGeneration = generation
	st.Phase = v.phase
	st.NextExecutionDate = notice.Timestamp(notice.RoundUp(v.next))
	if v.done != nil {
		st.LastScheduleDate = notice.Timestamp(*v.done)
	}
}

// begin shows that an attempt is under way.
func begin(st *api.BackupStatus, v verdict, a *attempt, next time.Time) {
	settle(st, verdict{phase: api.BackupPhaseRunning, next: next, done: v.done, another: v.another}, a.obj.Generation)
	st.LastExecutionDate = notice.Timestamp(a.begun)
	st.SpecDigest, st.UnfinishedSince = v.digest, notice.Timestamp(a.since)
}

// ended takes back what begin has said where an attempt has certainly stored
// nothing, nor could one before it. It also does where an attempt has left what must not be
// trusted: the next operator does not know under which key.
func ended(st *api.BackupStatus, a *attempt) {
	if a.left != "" || !a.look && !a.sent {
		st.UnfinishedSince = nil
	}
}

// succeed shows what an attempt has made.
func succeed(st *api.BackupStatus, a *attempt, m *storedBackup, next time.Time) {
	st.ObservedGeneration = a.obj.Generation
	st.Succeeded, st.Reason, st.Failures = true, "", 0
	st.UnfinishedSince = nil
	st.EtcdVersion, st.EtcdRevision, st.Endpoint = m.version, m.revision, m.endpoint
	st.ClusterID, st.RaftIndex, st.UnappliedEntries = m.cluster, m.applied, m.unapplied
	st.Key, st.Size, st.SHA256 = m.place, m.size, m.sha256
	st.Uncertain = m.uncertain
	st.Duration = nil
	if m.duration > 0 {
		st.Duration = &metav1.Duration{Duration: m.duration.Round(time.Millisecond)}
	}
	if m.found {
		st.LastExecutionDate = notice.Timestamp(m.begun) // what it holds is as of then
	}
	st.LastSuccessDate = notice.Timestamp(m.complete)
	st.NextExecutionDate = notice.Timestamp(next)
	st.Phase = api.BackupPhaseSucceeded
	if !a.window.IsZero() {
		st.Phase, st.LastScheduleDate = api.BackupPhaseWaiting, notice.Timestamp(a.window)
	}
}

// fail shows why an attempt has made nothing. What is known of the newest backup
// stays.
func fail(st *api.BackupStatus, a *attempt, reason string, now, next time.Time) {
	st.ObservedGeneration = a.obj.Generation
	ended(st, a)
	st.Succeeded, st.Reason = false, reason
	st.Failures++
	st.Phase = api.BackupPhaseRetrying
	st.NextExecutionDate = notice.Timestamp(retryAt(st.Failures, now, next))
}

// showAbandoned shows that an attempt is due and can't begin, because earlier work
// hangs.
func showAbandoned(st *api.BackupStatus, v verdict, reason string, generation int64) {
	v.phase = api.BackupPhaseRetrying
	settle(st, v, generation)
	st.Succeeded, st.Reason = false, reason
}

// refuse shows that an attempt has found a spec that can't be followed.
func refuse(st *api.BackupStatus, a *attempt, refused string) {
	ended(st, a)
	st.Failures++
	settle(st, verdict{phase: api.BackupPhaseInvalid, reason: untilEdited(refused)}, a.obj.Generation)
}

// gaveUp is why a backup that is made once was given up by v0.9.4, which did not
// try again; "" where it was not.
func gaveUp(obj *api.EtcdBackup, st *api.BackupStatus) string {
	switch {
	case st.Phase == api.BackupPhaseFailed && st.ObservedGeneration == obj.Generation:
		return st.Reason // of another operator of ours
	case st.Phase == api.BackupPhaseNone && st.ObservedGeneration == 0 && !st.Succeeded && st.Reason != "":
		return notice.Shorten(st.Reason, 2000) + "; so it failed in v0.9.4, and is not tried again by itself: edit the spec of the EtcdBackup, or make another one"
	}
	return ""
}

func untilEdited(refused string) string {
	return refused + "; edit the EtcdBackup: nothing is done until then"
}

// interrupt shows that the operator's end was an attempt's as well.
func interrupt(st *api.BackupStatus, a *attempt, now time.Time) {
	ended(st, a)
	st.Succeeded, st.Reason = false, "the backup operator ended while it made the backup: it is made when it is back"
	st.Phase = api.BackupPhaseRetrying
	st.NextExecutionDate = notice.Timestamp(notice.RoundUp(now))
}

func same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

var (
	// errOvertaken: somebody else has written the status.
	errOvertaken = errors.New("the status was written by somebody else")
	// errGone: the object is gone, or another has its name.
	errGone = errors.New("the EtcdBackup is gone")
)

// write changes the status in the API server. What somebody else wrote meanwhile
// is taken over first; where the change rests on what was there, the error is
// errOvertaken instead.
func (b *Backup) write(ctx context.Context, rests bool, change func(*api.BackupStatus)) error {
	change = withReadiness(change, &b.obj.Spec, b.cfg.Clock.Now())
	st := b.status.DeepCopy()
	change(st)
	if same(st, &b.status) {
		return nil
	}
	backups := b.cfg.Etcd.EtcdV1beta2().EtcdBackups(b.obj.Namespace)
	live := b.obj
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		next := live.DeepCopy()
		next.Status = *st
		updated, err := backups.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if err == nil {
			// The next write starts from here; the spec waits for the informer.
			b.obj = b.obj.DeepCopy()
			b.obj.ResourceVersion = updated.ResourceVersion
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		latest, getErr := b.latest(ctx)
		if getErr != nil {
			return getErr
		}
		live = latest
		if !same(&latest.Status, &b.status) {
			b.status = *latest.Status.DeepCopy()
			if rests {
				return errOvertaken
			}
			st = latest.Status.DeepCopy()
			change(st)
		}
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		if why := b.notFound(ctx); why != nil {
			return fmt.Errorf("write the status: %w", why)
		}
		if b.cfg.StatusMissing != nil {
			b.cfg.StatusMissing()
		}
		return fmt.Errorf("write the status: %w: %w", notice.NoStatusSubresource(api.EtcdBackupResourcePlural), err)
	case err != nil:
		return fmt.Errorf("write the status: %w", err)
	}
	b.notices.phaseChanged(b.status.Phase, st)
	b.status = *st
	b.cfg.Metrics.Saw(b.obj, &b.status)
	return nil
}

// notFound looks for the object after an answer that says it is not there: that answer may be about
// the resource, or about its status. The result is nil if the object is there, and errGone if not.
func (b *Backup) notFound(ctx context.Context) error {
	_, err := b.latest(ctx)
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return errGone
	}
	return err
}

// latest gets the object from the API server.
func (b *Backup) latest(ctx context.Context) (*api.EtcdBackup, error) {
	latest, err := b.cfg.Etcd.EtcdV1beta2().EtcdBackups(b.obj.Namespace).Get(ctx, b.obj.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if latest.UID != b.obj.UID {
		return nil, apierrors.NewNotFound(api.Resource(api.EtcdBackupResourcePlural), b.obj.Name)
	}
	return latest, nil
}
