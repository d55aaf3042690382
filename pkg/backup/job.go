// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

var (
	errEdited  = errors.New("the EtcdBackup was edited or deleted")
	errStopped = errors.New("the backup operator ends")
	errDue     = errors.New("the next backup is due")
	// errBug is a panic.
	errBug = errors.New("a bug ended the attempt, please report what the operator's log says")
)

// job is something that takes its time, an attempt or the tidying after one. There
// is one at a time. It has a goroutine of its own, so that an edit can stop it.
type job struct {
	obj  *api.EtcdBackup // that it was begun for
	stop context.CancelCauseFunc
	// yields tells that it gives way to an attempt, some time after it began.
	yields bool
	began  time.Time
	// ended gets one value, when nothing is under way any more.
	ended chan ending
}

// ending is how a job ended; note takes it over.
type ending interface{ note(b *Backup) }

func start(ctx context.Context, obj *api.EtcdBackup, work func(context.Context) ending) *job {
	ctx, stop := context.WithCancelCause(ctx)
	j := &job{obj: obj, stop: stop, ended: make(chan ending, 1)}
	go func() {
		defer stop(nil)
		j.ended <- work(ctx)
	}()
	return j
}

// overtakenBy tells whether the job must not go on for a newer state of its object.
func (j *job) overtakenBy(obj *api.EtcdBackup) bool {
	return obj.DeletionTimestamp != nil || obj.Generation != j.obj.Generation && interrupts(&j.obj.Spec, &obj.Spec)
}

// run makes the backup. It never panics: others are under way in the process.
func (a *attempt) run(ctx context.Context) (e ending) {
	defer func() {
		if r := recover(); r != nil {
			a.log.WithField("attempt", a.begun).Errorf("panic: %v\n%s", r, debug.Stack())
			e = &over{attempt: a, err: errBug}
		}
	}()
	m, err := a.make(ctx)
	o := &over{attempt: a, made: m, err: err}
	if err != nil {
		o.stopped = context.Cause(ctx)
	}
	return o
}

func (o *over) note(b *Backup) {
	b.over = o
	switch {
	case o.made != nil:
		b.wrong = map[string]bool{}
	case o.attempt.left != "":
		b.wrong[o.attempt.left] = true
	}
	switch {
	case o.made != nil:
		b.cfg.Metrics.attemptEnded(b.obj, resultSucceeded)
	case o.stopped != nil:
		b.cfg.Metrics.attemptEnded(b.obj, resultCancelled)
		b.notices.interrupted(o.stopped.Error())
	default:
		b.cfg.Metrics.attemptEnded(b.obj, resultFailed)
	}
}

// work tidies. It never panics either.
func (t *tidying) work(ctx context.Context) (e ending) {
	defer func() {
		if r := recover(); r != nil {
			t.log.Errorf("panic: %v\n%s", r, debug.Stack())
			e = &tidied{left: -1, owned: map[string]bool{}, err: fmt.Errorf("tidy the store: %w", errBug)}
		}
	}()
	result := t.run(ctx)
	if ctx.Err() != nil {
		result.err = nil // it was stopped
	}
	return &result
}

func (t *tidied) note(b *Backup) {
	b.owned = t.owned
	if t.left >= 0 {
		b.left = int32(min(t.left, 1<<30)) //nolint:gosec // it fits
	}
	b.cfg.Metrics.tidied(b.obj, *t)
	b.notices.tidied(*t)
}
