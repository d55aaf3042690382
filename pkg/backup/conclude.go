// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// attemptResult is how an attempt ended.
type attemptResult struct {
	attempt   *attempt
	backup    *storedBackup
	err       error
	abandoned *abandonedWork // what hangs; nil: nothing
	// stopped is why it was stopped; nil: it was not.
	stopped error
}

// conclude records how an attempt has ended, and has the store tidied.
func (b *Backup) conclude(ctx context.Context, now time.Time) error {
	o := b.result
	tidy, err := b.record(ctx, now)
	if err != nil {
		return err
	}
	b.result = nil
	if tidy && o.backup != nil {
		b.left++ // until the tidying counts, which an edit can stop
	}
	if tidy && b.obj.DeletionTimestamp == nil && !b.obj.Spec.Suspended() {
		spec := o.attempt.obj.Spec
		if in := (api.BackupSpec{StorageType: spec.StorageType, BackupSource: spec.BackupSource}); !same(b.ownedIn, in) {
			b.owned, b.ownedIn = map[string]origin{}, in // the same key in another bucket is another object
		}
		t := &tidying{cfg: &b.cfg, log: b.log, obj: o.attempt.obj, owned: b.owned, again: b.again}
		// A key that holds what must not be trusted would count as a backup.
		if errors.Is(o.err, store.ErrFull) && len(b.wrong) == 0 && t.obj.Generation == b.obj.Generation {
			t.full, t.uncertain = b.status.Key, !o.attempt.certain
		}
		if o.backup != nil {
			t.last = o.backup.key
			t.owned[t.last] = origin{mine: true, uncertain: o.backup.uncertain, base: o.backup.base, cluster: o.backup.cluster}
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

// record puts on record how an attempt has ended, and reports whether the store is to
// be tidied.
func (b *Backup) record(ctx context.Context, now time.Time) (tidy bool, err error) {
	o, failures, revision, cluster := b.result, b.status.Failures, b.status.EtcdRevision, b.status.ClusterID
	next := nextWindow(o.attempt, now)
	switch {
	case o.backup != nil:
		if err := b.write(ctx, false, func(st *api.BackupStatus) { succeed(st, o.attempt, o.backup, next) }); err != nil {
			return false, err
		}
		b.notices.succeeded(o.backup, failures)
		switch {
		case !o.attempt.obj.Spec.Periodic():
		case o.backup.revision < revision:
			b.notices.wentBack(o.backup.revision, revision)
		case cluster != "" && o.backup.cluster != "" && o.backup.cluster != cluster:
			b.notices.clusterChanged(o.backup.cluster, cluster)
		}
		return o.attempt.obj.Spec.Periodic(), nil
	case o.abandoned == nil && o.stopped != nil: // what follows from the newer object comes next
		return false, nil
	case o.abandoned == nil && isSpecError(o.err):
		b.refused, b.refusedGen = reasonOf(o.err), o.attempt.obj.Generation
		return false, b.write(ctx, false, func(st *api.BackupStatus) { refuse(st, o.attempt, b.refused) })
	default:
		if err := b.write(ctx, false, func(st *api.BackupStatus) { fail(st, o.attempt, reasonOf(o.err), now, next) }); err != nil {
			return false, err
		}
		b.notices.failed(b.status.Reason, b.status.Failures, now)
		return o.abandoned == nil && o.attempt.sent, nil
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
		e.applyTo(b)
	}
	if b.result == nil || b.gone {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	now := b.cfg.Clock.Now()
	var err error
	if b.result.stopped == nil {
		_, err = b.record(ctx, now)
	} else if b.obj.DeletionTimestamp == nil {
		err = b.write(ctx, true, func(st *api.BackupStatus) { interrupt(st, b.result.attempt, now) })
	}
	if err != nil && !errors.Is(err, errGone) {
		b.log.WithError(err).Info("the end of the attempt is not on record: the next operator looks for what it has made")
	}
}
