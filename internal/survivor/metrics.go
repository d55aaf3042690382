// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// settleTime is how long the metrics must stay the same before the database certainly holds all
	// that etcd has applied. By default, etcd commits its changes to the database every 100 ms.
	settleTime = 2 * time.Second
	// mostWait is how long a request waits for that. It is shorter than the survey of pkg/snapshot.
	mostWait = settleTime + 2*watchPause
	// askTime bounds one look at the metrics. etcd makes the page in a few milliseconds, but on a machine
	// with many processes for each core, that took longer than a second. With mostWait, it is not longer than
	// the survey of pkg/snapshot.
	askTime = 2 * time.Second
)

// watch looks at the metrics of the member all the time.
type watch struct {
	address string

	mu      sync.Mutex // guards all below
	version string
	last    etcd.Status // of the last successful look; zero: there was none
	since   time.Time   // from when on all looks had the same result; zero: the last one failed
	seen    time.Time   // when the last look began
}

// run looks until ctx ends.
func (w *watch) run(ctx context.Context) {
	pause := time.NewTicker(watchPause)
	defer pause.Stop()
	for {
		_, _ = w.ask(ctx) // a call asks again, and handles the error
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask looks once. The error is that of etcd.NotServing.
func (w *watch) ask(ctx context.Context) (etcd.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	begun := time.Now()
	s, err := etcd.NotServing(ctx, w.address)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Version != "" {
		w.version = s.Version
	}
	switch {
	case errors.Is(err, context.Canceled):
		// The caller has gone.
	case err != nil:
		w.since = time.Time{}
	default:
		if w.since.IsZero() || s.MemberID != w.last.MemberID || s.Revision != w.last.Revision || s.RaftApplied != w.last.RaftApplied {
			w.since = time.Now()
		}
		w.last, w.seen = s, begun
	}
	return s, err
}

// settled returns the index of the last entry that the member has applied, if the database holds
// it: for settleTime nothing has changed, and the database has the same revision. Otherwise, it
// returns 0.
func (w *watch) settled(revision int64) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() || w.seen.Sub(w.since) < settleTime || w.last.Revision != revision {
		return 0
	}
	return w.last.RaftApplied
}

// await waits until the database holds all that the metrics say, but not longer than mostWait. A
// member that has just started still applies entries of its log, which may be acknowledged writes.
func (w *watch) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, mostWait)
	defer cancel()
	pause := time.NewTicker(watchPause / 10)
	defer pause.Stop()
	for !w.ready() {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// ready reports whether there is nothing to wait for. If the last look has failed, nobody knows.
func (w *watch) ready() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since.IsZero() || w.seen.Sub(w.since) >= settleTime
}

// member returns the version of the member, and whether it is a learner, as far as known.
func (w *watch) member() (version string, learner bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version, w.last.Learner
}
