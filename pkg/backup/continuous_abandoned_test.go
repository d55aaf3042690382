// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// hangInLog makes the next operation of a kind on segments hang, whatever its context says, until it
// is let go. begun counts those operations from then on.
func (w *logWorld) hangInLog(what string) (begun *atomic.Int32, letGo func()) {
	gate, begun := make(chan struct{}), new(atomic.Int32)
	w.store.meddle(func(_ context.Context, operation, key string) error {
		if operation == what && strings.HasPrefix(key, changelog.KeyPrefix("etcd")) && begun.Add(1) == 1 {
			<-gate
		}
		return nil
	}, nil)
	return begun, func() { close(gate) }
}

// The server of a volume is gone, and calls to the system return no more.
func TestALogThatHangsHoldsNotTheEndOfTheOperator(t *testing.T) {
	for _, operation := range []string{"list", "stat", "get", "put"} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				stop := w.run()
				w.write(2 * time.Minute)
				stop()
				begun, letGo := w.hangInLog(operation)
				stop = w.run()
				w.write(time.Minute)
				if n := begun.Load(); n != 1 {
					t.Errorf("%d of the operation that was to hang", n)
				}
				endsInTime(t, stop)
				letGo()
			})
		})
	}
}

func TestNoSegmentIsStoredBesideOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		begun, letGo := w.hangInLog("put")
		stop := w.run()
		w.write(time.Hour)
		if st := w.continuous(); begun.Load() != 1 || st.Recording || !strings.Contains(st.Reason, "the store did not take") || !strings.Contains(st.Reason, "does not answer") {
			t.Errorf("%d segments were sent; the log is %+v", begun.Load(), st)
		}
		letGo()
		w.write(5 * time.Minute)
		st := w.continuous()
		at, _ := w.member.Position(t.Context())
		if !st.Recording || st.Reason != "" || at.Revision-w.log(testCluster, st.StartRevision-1).Last > 20 {
			t.Errorf("the log is %+v, and etcd at %d", st, at.Revision)
		}
		stop()
	})
}
