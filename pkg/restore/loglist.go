// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// errWithdrawn ends a list of an offer that is no more.
var errWithdrawn = errors.New("the backup is no longer offered")

// logList lists the log that follows a backup, once for all requests. A store may need longer for a
// long log than a client waits, so the list outlives the request that began it.
type logList struct {
	open   OpenLocation
	obj    *api.EtcdRestore
	backup *api.RestoredBackup
	clock  clock.Clock
	// begin lists in a goroutine of listing, whose context ends with stop.
	begin   func(ended chan struct{})
	end     context.CancelCauseFunc
	listing sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	begun   chan struct{} // closed when the list has ended; nil: none has begun
	found   []store.Object
	err     error
}

func newLogList(ctx context.Context, open OpenLocation, obj *api.EtcdRestore, backup *api.RestoredBackup, clk clock.Clock) *logList {
	l := &logList{open: open, obj: obj, backup: backup, clock: clk}
	ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	l.begin = func(ended chan struct{}) { l.listing.Go(func() { l.run(ctx, ended) }) }
	return l
}

// stop ends a list that is under way and waits for it. No other begins. A list that hangs in its store is
// abandoned after a while.
func (l *logList) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.end(errWithdrawn)
	l.listing.Wait()
}

// get returns the objects of the log. After an error, the next call lists again.
func (l *logList) get(ctx context.Context) ([]store.Object, error) {
	l.mu.Lock()
	if l.stopped {
		l.mu.Unlock()
		return nil, errWithdrawn
	}
	if l.begun == nil {
		l.begun = make(chan struct{})
		l.begin(l.begun)
	}
	ended := l.begun
	l.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
		return nil, fmt.Errorf("list the log of changes: %w", context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil && l.begun == ended {
		l.begun = nil
	}
	return l.found, l.err
}

// forget has the next call list again.
func (l *logList) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.begun:
		l.begun = nil
	default: // under way, or none
	}
}

func (l *logList) run(ctx context.Context, ended chan struct{}) {
	type listed struct {
		found []store.Object
		err   error
	}
	result, abandoned := watchdog.Run(ctx, l.clock, func() listed {
		found, err := watchdog.GuardValue(func() ([]store.Object, error) { return l.list(ctx) })
		return listed{found, err}
	})
	if abandoned != nil {
		result.err = errWithdrawn
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found, l.err = result.found, result.err
	close(ended)
}

func (l *logList) list(ctx context.Context) ([]store.Object, error) {
	var moved atomic.Int64
	ctx, stop := watchdog.WithStallTimeout(store.WithProgress(ctx, func(int) { moved.Add(1) }), l.clock,
		watchdog.Progress{Moved: moved.Load, Stalled: func() error { return errStalled }})
	defer stop()
	place, err := l.open(ctx, l.obj.Namespace, &l.obj.Spec)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	found, err := selection.Segments(ctx, place, l.backup.ClusterID, l.backup.EtcdRevision, l.backup.Revision)
	if err != nil {
		return nil, err
	}
	size := snapshotSize(l.backup)
	for _, part := range found {
		size += part.Size
	}
	if size != l.backup.Size {
		return nil, fmt.Errorf("%w: with its log it has %d bytes, and had %d", backupserver.ErrReplaced, size, l.backup.Size)
	}
	return found, nil
}
