// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// A way out of a lost quorum restores the revision that the status names, and no later one.
func TestTheStatusHasTheWholeLogWhenTheQuorumIsGone(t *testing.T) {
	for name, operatorEnds := range map[string]bool{"while the operator records": false, "and the operator with it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				stop := w.run()
				w.write(2*time.Minute + 20*time.Second)
				at, _ := w.member.Position(t.Context())
				if operatorEnds {
					stop()
				}
				w.member.Fail(errors.New("etcdserver: no leader"))
				if operatorEnds {
					stop = w.run()
				}
				defer stop()
				pass(5 * time.Minute)
				st := w.continuous()
				stored := w.log(testCluster, st.StartRevision-1).Last
				if st.NewestRevision != stored || st.Gaps != 0 {
					t.Errorf("the status has revision %d, and the store %d: %+v", st.NewestRevision, stored, st)
				}
				if !operatorEnds && stored != at.Revision {
					t.Errorf("the store has revision %d, and the operator had received %d", stored, at.Revision)
				}
			})
		})
	}
}

// The automatic recovery does not wait for the list of a long log.
func TestTheStatusHasTheWholeLongLogWhenTheQuorumIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		w.write(2*time.Minute + 20*time.Second)
		stop()
		before := w.continuous().NewestRevision
		w.member.Fail(errors.New("etcdserver: no leader"))
		w.lengthen()
		w.slowList()
		defer w.run()()
		pass(time.Minute)
		st := w.continuous()
		if stored := w.log(testCluster, st.StartRevision-1).Last; st.NewestRevision != stored || stored == before {
			t.Errorf("the status has revision %d after %d, and the store %d: %+v", st.NewestRevision, before, stored, st)
		}
	})
}

// afterSegments calls back after each segment that the store has taken. The caller of the store gets the error.
func (w *logWorld) afterSegments(do func(ctx context.Context) error) {
	w.store.meddle(nil, func(ctx context.Context, operation, key string) error {
		if operation != "put" || !strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
			return nil
		}
		return do(ctx)
	})
}

var errLost = errors.New("the answer of the store is lost")

func TestTheStatusHasASegmentThatTheStoreTookInSilence(t *testing.T) {
	for name, silence := range map[string]func(w *logWorld){
		"its answer is lost, and the quorum is gone": func(w *logWorld) {
			w.afterSegments(func(context.Context) error {
				w.member.Fail(errors.New("etcdserver: no leader"))
				return errLost
			})
		},
		// Clients of stores confirm an object after the end of their context.
		"it answers after an edit": func(w *logWorld) {
			w.afterSegments(func(ctx context.Context) error { <-ctx.Done(); return nil })
			w.write(10 * time.Second)
			w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				stop := w.run()
				defer stop()
				w.write(2*time.Minute + 20*time.Second)
				before := w.continuous()
				silence(w)
				w.write(20 * time.Second)
				pass(5 * time.Minute)
				st := w.continuous()
				stored := w.log(testCluster, st.StartRevision-1).Last
				if st.NewestRevision != stored || stored <= before.NewestRevision || st.Gaps != 0 || !st.StartDate.Equal(before.StartDate) {
					t.Errorf("the store has revision %d, and the status was %+v, and is %+v", stored, before, st)
				}
			})
		})
	}
}

// Kubernetes does not answer when a log begins, and then a segment's answer is lost.
func TestTheBeginOfALogIsReportedThoughItsEndWasUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		segments := 0
		w.afterSegments(func(context.Context) error {
			w.apiDown.Store(true)
			if segments++; segments < 3 {
				return nil
			}
			w.member.Fail(errors.New("etcdserver: no leader"))
			return errLost
		})
		stop := w.run()
		defer stop()
		w.write(time.Minute)
		w.apiDown.Store(false)
		pass(5 * time.Minute)
		st := w.continuous()
		if st.StartDate == nil || st.StartRevision == 0 || st.NewestRevision != w.log(testCluster, st.StartRevision-1).Last {
			t.Errorf("%d segments are stored, and the log is %+v", segments, st)
		}
	})
}
