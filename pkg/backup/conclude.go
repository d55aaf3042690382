// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// over is an attempt that has ended.
type over struct {
	attempt *attempt
	made    *made
	err     error
	hung    *hung // it was left to itself; nil: it was not
	// stopped is why it was stopped; nil: it was not.
	stopped error
}

// conclude records how an attempt has ended, and has the store tidied.
func (b *Backup) conclude(ctx context.Context, now time.Time) error {
	o := b.over
	tidy, err := b.record(ctx, now)
	if err != nil {
		return err
	}
	b.over = nil
	if tidy && b.obj.DeletionTimestamp == nil {
		spec := o.attempt.obj.Spec
		if in := (api.BackupSpec{StorageType: spec.StorageType, BackupSource: spec.BackupSource}); !same(b.ownedIn, in) {
			b.owned, b.ownedIn = map[string]origin{}, in // the same key in another bucket is another object
		}
		t := &tidying{cfg: &b.cfg, log: b.log, obj: o.attempt.obj, owned: b.owned}
		if o.made != nil {
			t.last = o.made.key
			t.owned[t.last] = origin{mine: true, uncertain: o.made.uncertain}
		}
		b.job = b.start(ctx, t.obj, t.work)
		b.job.yields, b.job.until = true, now
		if b.cut {
			// Or it would never come further than the time from one to the next allows.
			b.job.until = now.Add(tidyPatience)
		}
		b.cut = false
	}
	return nil
}

// record puts on record how an attempt has ended, and tells whether the store is to
// be tidied.
func (b *Backup) record(ctx context.Context, now time.Time) (tidy bool, err error) {
	o, failures, revision := b.over, b.status.Failures, b.status.EtcdRevision
	next := nextWindow(o.attempt, now)
	switch {
	case o.made != nil:
		if err := b.write(ctx, false, func(st *api.BackupStatus) { succeed(st, o.attempt, o.made, next) }); err != nil {
			return false, err
		}
		b.notices.succeeded(o.made, failures)
		if o.attempt.obj.Spec.Periodic() && o.made.revision < revision {
			b.notices.wentBack(o.made.revision, revision)
		}
		return o.attempt.obj.Spec.Periodic(), nil
	case o.hung == nil && o.stopped != nil: // what follows from the newer object comes next
		return false, nil
	case o.hung == nil && isSpecError(o.err):
		b.refused, b.refusedGen = reasonOf(o.err), o.attempt.obj.Generation
		return false, b.write(ctx, false, func(st *api.BackupStatus) { refuse(st, o.attempt, b.refused) })
	default:
		if err := b.write(ctx, false, func(st *api.BackupStatus) { fail(st, o.attempt, reasonOf(o.err), now, next) }); err != nil {
			return false, err
		}
		b.notices.failed(b.status.Reason, b.status.Failures, now)
		return o.hung == nil && o.attempt.sent, nil
	}
}

// reasonOf is an error for the status.
func reasonOf(err error) string { return notice.Shorten(err.Error(), 2000) }

// end waits for what is under way, which ends with ctx, and records its end.
func (b *Backup) end(ctx context.Context) {
	if b.job != nil {
		b.job.Stop(errStopped)
		e := b.job.Wait()
		b.job = nil
		e.note(b)
	}
	if b.over == nil || b.gone {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	now := b.cfg.Clock.Now()
	var err error
	if b.over.stopped == nil {
		_, err = b.record(ctx, now)
	} else if b.obj.DeletionTimestamp == nil {
		err = b.write(ctx, true, func(st *api.BackupStatus) { interrupt(st, b.over.attempt, now) })
	}
	if err != nil && !errors.Is(err, errGone) {
		b.log.WithError(err).Info("the end of the attempt is not on record: the next operator looks for what it has made")
	}
}
