// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// A process that is killed stores nothing more, and writes no status.
func TestABackupOperatorThatIsKilledEveryFewSecondsLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		var killed atomic.Bool
		dead := errors.New("the process is dead")
		w.store.meddle(func(context.Context, string, string) error {
			if killed.Load() {
				return dead
			}
			return nil
		}, nil)
		w.etcd.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return killed.Load(), nil, dead })
		stop := w.run()
		w.write(time.Minute)
		for range 120 {
			w.write(5 * time.Second) // as long as the lag may be
			killed.Store(true)
			stop()
			killed.Store(false)
			stop = w.run()
		}
		defer func() { stop() }()
		check := func(when string, most int64) {
			t.Helper()
			at, _ := w.member.Position(t.Context())
			st := w.continuous()
			if r := w.log(testCluster, st.StartRevision-1); !st.Recording || st.Gaps != 0 || at.Revision-r.Last > most {
				t.Errorf("%s: %+v; the log ends with %d of %d", when, st, r.Last, at.Revision)
			}
		}
		check("after ten minutes", 40) // the writes of two processes
		w.write(30 * time.Second)
		check("once it lives", 20)
	})
}
