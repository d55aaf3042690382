// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// shutdownTimeout limits the record of an attempt that ends with the operator.
const shutdownTimeout = 3 * time.Second

// Config is what all backups of an operator share.
type Config struct {
	Kube kubernetes.Interface
	Etcd versioned.Interface
	// Namespace is the one that the operator manages; "": all.
	Namespace string
	// VolumeDir is the directory of backups with storageType Volume; "": there are
	// none.
	VolumeDir string
	Slots     *Slots
	// Keys default to none that others share.
	Keys     *Keys
	Recorder record.EventRecorder
	Metrics  *Metrics
	Logger   *logrus.Entry
	Clock    clock.Clock
	// StatusMissing is called if the API server knows an EtcdBackup and not its status subresource;
	// may be nil.
	StatusMissing func()
	// Members makes clients of members for OpenSnapshot; nil: etcd's own.
	Members func(*tls.Config, etcd.Credentials) snapshot.Client
	// OpenSnapshot and OpenLocation default to pkg/snapshot and pkg/location.
	OpenSnapshot OpenSnapshot
	OpenLocation OpenLocation
	// OpenMember defaults to a member of a real etcd.
	OpenMember OpenMember
	// Waiting is what may wait for stores in all logs of changes; nil: as much as each may have alone.
	Waiting *recorder.Budget
	// HashAt defaults to a real etcd.
	HashAt HashAt
	// Tests limits tests by restoring. OpenRestored defaults to etcd's own client.
	Tests        *Tests
	OpenRestored func(snapshot.Source) (Restored, error)
}

// Backup manages one EtcdBackup. All fields but the mailbox belong to the
// goroutine of Run.
type Backup struct {
	*loop.Mailbox[*api.EtcdBackup]
	cfg Config
	log *logrus.Entry

	obj *api.EtcdBackup // own copy of the newest object
	// status is what was last written, which may be newer than obj's.
	status  api.BackupStatus
	notices notices

	job *job // nil while nothing is under way
	// test is a test of a backup that runs beside it, and tested one that is not in the
	// status yet.
	test    *loop.Job[testResult]
	testing *restoreTest
	tested  *testResult
	// turn ends the turn among all tests that the next one has already; nil: it has none.
	turn    func()
	logging logging
	// result is of an attempt that has ended and is not in the status yet.
	result *attemptResult
	// abandoned is work that hangs; nil: there is none.
	abandoned *abandonedWork
	// refused is why an attempt found that the spec of a generation can't be
	// followed.
	refused    string
	refusedGen int64
	// owned holds what is known of keys in the store. ownedIn names that store.
	owned   map[string]origin
	ownedIn api.BackupSpec
	// again is what begun restores may choose once more after an edit.
	again choices
	// cut means that the tidying before gave way to an attempt or an edit.
	cut bool
	// wrong are keys under which attempts have left what must not be trusted, since
	// the last success.
	wrong map[string]bool
	left  int32 // backups in the store after the last tidying
	// due is true while an attempt is, and claim then its place in the queue.
	due   bool
	claim *claim
	// gone is true when the object is no longer there; ctx will end.
	gone    bool
	backoff loop.Backoff
}

// New returns the Backup of an EtcdBackup. Nothing happens before Run.
func New(cfg Config, obj *api.EtcdBackup) (*Backup, error) {
	if obj.UID == "" {
		return nil, fmt.Errorf("EtcdBackup %s/%s has no UID: it did not come from an API server", obj.Namespace, obj.Name)
	}
	if cfg.OpenSnapshot == nil {
		cfg.OpenSnapshot = fromEtcd
	}
	if cfg.OpenLocation == nil {
		cfg.OpenLocation = inStores(secretsOf(cfg.Kube), cfg.VolumeDir)
	}
	if cfg.OpenMember == nil {
		cfg.OpenMember = openMember
	}
	if cfg.HashAt == nil {
		cfg.HashAt = hashesOf(secondLook)
	}
	if cfg.OpenRestored == nil {
		cfg.OpenRestored = openRestored
	}
	obj = obj.DeepCopy()
	b := &Backup{
		cfg:     cfg,
		log:     cfg.Logger.WithFields(logrus.Fields{"backup-namespace": obj.Namespace, "backup-name": obj.Name}),
		Mailbox: loop.NewMailbox[*api.EtcdBackup](),
		obj:     obj,
		status:  *obj.Status.DeepCopy(),
		owned:   map[string]origin{},
		again:   choices{},
		wrong:   map[string]bool{},
		left:    obj.Status.Backups,
	}
	b.notices = notices{Board: notice.Board[*api.EtcdBackup]{Recorder: cfg.Recorder, Log: b.log, Object: obj}}
	return b, nil
}

// Run manages the backup until ctx ends. When it returns, nothing of it is
// under way any more but what hangs in a call to the system. An object under
// deletion must stay with it until it is gone.
func (b *Backup) Run(ctx context.Context) {
	b.log.WithField("phase", b.status.Phase).Info("managing the backup")
	defer b.log.Info("no longer managing the backup")
	defer b.cfg.Metrics.Forget(b.obj)
	defer func() { // also in a panic
		b.dropClaim()
		b.logging.stop(errStopped) // all end at the same time: each may hang for a while
		if b.test != nil {
			b.test.Stop(errStopped)
		}
		if b.job != nil {
			b.job.Stop(errStopped)
			b.job.Wait()
		}
		if b.test != nil {
			b.turn = b.test.Wait().turn
		}
		b.endTurn()
		b.logging.wait()
	}()
	b.cfg.Metrics.appear(b.obj)
	b.cfg.Metrics.Saw(b.obj, &b.status)

	loop.Run(ctx, b.cfg.Clock, b.Mailbox, loop.Reconciler[*api.EtcdBackup]{Take: b.take, Pass: b.reconcile})
	b.end(ctx)
}

// reconcile notes what has ended, makes a pass, and begins an attempt in a granted slot.
func (b *Backup) reconcile(ctx context.Context) time.Duration {
	if b.job != nil {
		if e, ended := b.job.Result(); ended {
			b.job = nil
			e.applyTo(b)
		}
	}
	if b.abandoned.hasReturned() {
		b.log.Info("what hung has returned")
		b.abandoned = nil
	}
	for {
		next := b.pass(ctx)
		switch {
		case !b.due:
			b.dropClaim()
		case b.claim == nil:
			b.claim = b.cfg.Slots.claim(ctx, b.obj.Namespace, b.Wake)
		case b.claim.take():
			b.dropClaim()
			b.attempt(ctx)
			continue
		}
		return next
	}
}

func (b *Backup) dropClaim() {
	if b.claim != nil {
		b.claim.drop()
		b.claim = nil
	}
}

// take continues from a newer state of the object, and from its status as well. One
// that is older than the last write says nothing new.
func (b *Backup) take(obj *api.EtcdBackup) {
	if loop.Outdated(obj, b.obj) {
		return
	}
	if obj.Generation != b.obj.Generation || obj.DeletionTimestamp != nil {
		b.backoff.Skip()
	}
	if !same(&obj.Status, &b.status) {
		b.status = *obj.Status.DeepCopy()
		b.cfg.Metrics.Saw(obj, &b.status)
	}
	b.obj, b.notices.Object = obj, obj
}

// pass does what is due and reports how long the next look may wait. Attempts are
// begun when a slot is free.
func (b *Backup) pass(ctx context.Context) time.Duration {
	b.due = false
	now := b.cfg.Clock.Now()
	if wait := b.backoff.Remaining(now); wait > 0 && !b.gone {
		return wait
	}
	next, err := b.step(ctx, now)
	if err == nil {
		var test time.Duration
		test, err = b.keepTest(ctx, now)
		next = min(next, test)
	}
	if err == nil {
		var log time.Duration
		log, err = b.keepLog(ctx, now)
		next = min(next, log)
	}
	return b.after(ctx, next, err)
}

// after makes sure that requests which fail are not repeated at once.
func (b *Backup) after(ctx context.Context, next time.Duration, err error) time.Duration {
	switch {
	case err == nil:
		b.backoff.Reset()
		return min(max(next, 0), loop.LongestSleep)
	case errors.Is(err, errGone):
		b.gone, b.result = true, nil
		return loop.LongestSleep
	case ctx.Err() != nil:
		return loop.LongestSleep
	case errors.Is(err, errOvertaken):
		b.log.WithError(err).Info("looking again")
		return 0
	}
	wait := b.backoff.Fail(b.cfg.Clock.Now())
	b.log.WithError(err).WithField("failures", b.backoff.Failures()).Error("Kubernetes does not do what it was asked for; trying again")
	return wait
}

// step does the first of what there is to do.
func (b *Backup) step(ctx context.Context, now time.Time) (time.Duration, error) {
	deleting := b.obj.DeletionTimestamp != nil
	switch {
	case b.gone:
		return loop.LongestSleep, nil
	case b.job != nil:
		if b.job.overtakenBy(b.obj) {
			b.job.Stop(errEdited)
			b.cut = b.cut || b.job.yields
			return loop.LongestSleep, nil // its end is waited for
		}
		return b.yield(now), nil
	case b.result != nil:
		return 0, b.conclude(ctx, now)
	case deleting:
		return loop.LongestSleep, b.finalize(ctx, false)
	}
	refused := ""
	if b.refusedGen == b.obj.Generation {
		refused = b.refused
	}
	v := plan(b.obj, &b.status, refused, now)
	if v.phase != api.BackupPhaseInvalid {
		if err := b.finalize(ctx, b.obj.Spec.Periodic()); err != nil {
			return 0, err
		}
	}
	if v.run && b.abandoned != nil {
		// A second one might write where the first does when it continues.
		return loop.LongestSleep, b.write(ctx, false, func(st *api.BackupStatus) { showAbandoned(st, v, b.abandoned.reason, b.obj.Generation) })
	}
	if v.run && (b.claim.isGranted() || b.cfg.Slots.free(b.obj.Namespace)) {
		b.due = true
		return loop.LongestSleep, nil
	}
	err := b.write(ctx, false, func(st *api.BackupStatus) {
		settle(st, v, b.obj.Generation)
		st.Backups = b.left
	})
	if err != nil {
		return 0, err
	}
	b.due = v.run
	if v.run || v.next.IsZero() {
		return loop.LongestSleep, nil
	}
	return v.next.Sub(now), nil
}

// yield has tidying give way to an attempt that is due: it continues after it.
func (b *Backup) yield(now time.Time) time.Duration {
	if !b.job.yields {
		return loop.LongestSleep
	}
	v := plan(b.obj, &b.status, "", now)
	next := v.next
	if v.run {
		next = b.job.until
	}
	switch {
	case next.IsZero():
		return loop.LongestSleep
	case v.run && !next.After(now):
		b.job.Stop(errDue)
		b.cut = true
		return loop.LongestSleep
	}
	return next.Sub(now)
}

// attempt begins an attempt in the slot that it was given, or gives that back.
func (b *Backup) attempt(ctx context.Context) {
	now := b.cfg.Clock.Now()
	v := plan(b.obj, &b.status, "", now)
	if !v.run {
		b.cfg.Slots.release(b.obj.Namespace)
		return
	}
	a := &attempt{cfg: &b.cfg, log: b.log, obj: b.obj, window: v.window, base: v.base, begun: now, since: now, failures: b.status.Failures, wrong: b.wrong}
	if since := unfinished(&b.status, v.digest); !since.IsZero() {
		a.look, a.since = true, since
	}
	// What is not on record could be done twice.
	if err := b.write(ctx, true, func(st *api.BackupStatus) { begin(st, v, a, nextWindow(a, now)) }); err != nil {
		b.cfg.Slots.release(b.obj.Namespace)
		b.after(ctx, 0, err)
		return
	}
	b.job = b.start(ctx, a.obj, func(ctx context.Context) jobResult {
		defer a.cfg.Slots.release(a.obj.Namespace)
		return a.run(ctx)
	})
}

// nextWindow is the window after a moment by the spec of an attempt; zero where
// there is none.
func nextWindow(a *attempt, now time.Time) time.Time {
	s, err := scheduleOf(a.obj)
	if err != nil || s == nil {
		return time.Time{}
	}
	if now.Before(a.window) {
		now = a.window
	}
	return s.next(now)
}
