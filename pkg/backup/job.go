// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

var (
	errEdited  = errors.New("the EtcdBackup was edited or deleted")
	errStopped = errors.New("the backup operator ends")
	errDue     = errors.New("the next backup is due")
)

// job is something that takes its time, an attempt or the tidying after one. There
// is one at a time. It has a goroutine of its own, so that an edit can stop it.
type job struct {
	*loop.Job[jobResult]
	obj *api.EtcdBackup // that it was begun for
	// yields means that it gives way to an attempt that is due, from a time on.
	yields bool
	until  time.Time
	begun  time.Time
}

// jobResult is how a job ended; applyTo notes it.
type jobResult interface{ applyTo(b *Backup) }

func (b *Backup) start(ctx context.Context, obj *api.EtcdBackup, work func(context.Context) jobResult) *job {
	return &job{Job: loop.Start(ctx, b.Wake, work), obj: obj, begun: b.cfg.Clock.Now()}
}

// overtakenBy reports whether the job must not continue for a newer state of its object. A suspended
// one has nothing deleted: somebody may restore elsewhere.
func (j *job) overtakenBy(obj *api.EtcdBackup) bool {
	return obj.DeletionTimestamp != nil || j.yields && obj.Spec.Suspended() || obj.Generation != j.obj.Generation && interrupts(&j.obj.Spec, &obj.Spec)
}

// run makes the backup. It never panics: others are under way in the process.
func (a *attempt) run(ctx context.Context) jobResult {
	o, err := watchdog.Recover(a.log.WithField("attempt", a.begun), func() *attemptResult { return a.runOnce(ctx) })
	if err != nil {
		return &attemptResult{attempt: a, err: err}
	}
	return o
}

func (a *attempt) runOnce(ctx context.Context) *attemptResult {
	m, abandoned, err := a.make(ctx)
	o := &attemptResult{attempt: a, backup: m, abandoned: abandoned, err: err}
	if abandoned != nil {
		o.attempt = a.detached()
	}
	if err != nil {
		o.stopped = context.Cause(ctx)
	}
	return o
}

// detached returns a copy of an abandoned attempt for the record. The attempt itself may
// still change, and may store the backup in the end.
func (a *attempt) detached() *attempt {
	return &attempt{
		cfg: a.cfg, log: a.log, obj: a.obj, window: a.window, base: a.base, begun: a.begun,
		look: a.look, since: a.since, failures: a.failures, wrong: a.wrong, sent: true,
	}
}

func (o *attemptResult) applyTo(b *Backup) {
	b.result = o
	b.abandon(o.abandoned)
	switch {
	case o.backup != nil:
		b.wrong = map[string]bool{}
	case o.attempt.left != "":
		b.wrong[o.attempt.left] = true
	}
	switch {
	case o.backup != nil:
		b.cfg.Metrics.attemptEnded(b.obj, resultSucceeded)
	case o.stopped != nil:
		b.cfg.Metrics.attemptEnded(b.obj, resultCancelled)
		b.notices.interrupted(o.stopped.Error())
	default:
		b.cfg.Metrics.attemptEnded(b.obj, resultFailed)
	}
}

// work tidies.
func (t *tidying) work(ctx context.Context) jobResult {
	limited, cancel := context.WithTimeoutCause(ctx, t.limit(), errTimeUp)
	defer cancel()
	result, left := watchdog.Run(limited, t.cfg.Clock, func() tidied { return t.runRecovered(limited) })
	if left != nil {
		result = tidied{left: -1, owned: t.owned, abandoned: abandonedAfter(limited, left, &t.obj.Spec, holdsAll)}
	}
	switch {
	case ctx.Err() != nil:
		result.err = nil // it was stopped
	case limited.Err() != nil && result.progress():
		t.log.WithError(result.err).Info("the tidying of the store continues after the next backup")
		result.err = nil
	}
	return &result
}

// runRecovered is run, and never panics.
func (t *tidying) runRecovered(ctx context.Context) tidied {
	result, err := watchdog.Recover(t.log, func() tidied { return t.run(ctx) })
	if err != nil {
		return tidied{left: -1, owned: map[string]origin{}, err: fmt.Errorf("tidy the store: %w", err)}
	}
	return result
}

func (t *tidied) applyTo(b *Backup) {
	b.owned = t.owned
	b.abandon(t.abandoned)
	if t.left >= 0 {
		b.left = int32(min(t.left, 1<<30)) // it fits
	}
	b.cfg.Metrics.tidied(b.obj, *t)
	b.notices.tidied(*t)
}
