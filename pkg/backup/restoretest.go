// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// testLook is the time between two looks at a running test, and for which it may wait before
// the status states what for.
const testLook = 30 * time.Second

// tidyingPatience is how long a test waits for the tidying of the store, which says what backups are left.
// The tidying of a long log takes hours.
const tidyingPatience = 5 * time.Minute

// notDonePause is the time from the end of a test that could not be carried out to the next attempt. Only
// then does the result show: the alert sees it, and a person.
const notDonePause = 10 * time.Minute

// testVerdict is what is to be done about tests at a moment.
type testVerdict struct {
	run bool
	// next is when a test is due; zero: none.
	next time.Time
}

// planTest decides by the spec, the status and the time alone.
func planTest(obj *api.EtcdBackup, st *api.BackupStatus, now time.Time) testVerdict {
	t, last := obj.Spec.RestoreTest, st.RestoreTest
	switch {
	case t == nil, obj.DeletionTimestamp != nil, obj.Spec.Suspended(), st.Key == "", st.Phase == api.BackupPhaseInvalid, isElsewhere(obj, st):
		return testVerdict{}
	case last == nil, last.Result == api.RestoreTestRunning: // its operator has ended
		return testVerdict{run: true}
	}
	began := timeOf(last.StartDate)
	if began == nil {
		return testVerdict{run: true}
	}
	var next time.Time
	switch {
	case last.Result == api.RestoreTestNotDone:
		next = began.Add(notDonePause)
		if last.Duration != nil {
			next = next.Add(last.Duration.Duration)
		}
	case last.Key == st.Key && (obj.Spec.Continuous == nil || t.IntervalInSecond == 0):
		return testVerdict{} // this backup has its result
	default:
		next = began.Add(t.Interval())
	}
	return testVerdict{run: !next.After(now), next: next}
}

// isElsewhere reports whether the newest backup may lie at another destination than that of the spec: an
// edit has named it since. Its own first backup brings the next test.
func isElsewhere(obj *api.EtcdBackup, st *api.BackupStatus) bool {
	path := obj.Spec.Path()
	if st.Key != path && !strings.HasPrefix(st.Key, backupobject.KeyPrefix(path)) {
		return true
	}
	return st.SpecDigest != "" && st.SpecDigest != digestOf(&obj.Spec) // the endpoint may be another one
}

// testResult is how a test ended.
type testResult struct {
	result api.RestoreTestResult
	reason string
	key    string
	// from is the backup that was restored, if point is one of the log.
	from     string
	point    point
	revision int64
	keys     int64
	began    time.Time
	took     time.Duration
	stopped  bool
	// cleaned means that the test ended with its operator, and nobody wants another one.
	cleaned bool
	// turn ends the turn of a test that waited long for it and did nothing: the test is to choose
	// once more what it restores. nil: another end.
	turn func()
}

// keepTest begins, notes and ends tests beside backups. It returns how long the next look may
// wait.
func (b *Backup) keepTest(ctx context.Context, now time.Time) (time.Duration, error) {
	keepTurn := false
	defer func() {
		if !keepTurn {
			b.endTurn()
		}
	}()
	if b.test != nil {
		if r, ended := b.test.Result(); ended {
			b.test = nil
			switch {
			case r.turn != nil:
				b.turn = r.turn
			case !r.stopped:
				b.tested = &r
			}
		} else if b.obj.DeletionTimestamp != nil || b.obj.Spec.RestoreTest == nil && !b.testing.abandoned {
			b.test.Stop(errEdited)
		}
	}
	if b.gone {
		return loop.LongestSleep, nil
	}
	if b.test != nil {
		return testLook, b.showWait(ctx, now)
	}
	if r := b.tested; r != nil {
		if err := b.write(ctx, false, func(st *api.BackupStatus) { showTest(st, r) }); err != nil {
			return 0, err
		}
		b.tested = nil
		if !r.cleaned {
			b.notices.tested(r)
		}
	}
	if t := b.abandonedTest(now); t != nil {
		b.testing = t
		b.test = loop.Start(ctx, b.Wake, t.cleanUp)
		return loop.LongestSleep, nil
	}
	if b.obj.Spec.RestoreTest == nil && b.status.RestoreTest != nil && b.obj.DeletionTimestamp == nil {
		return loop.LongestSleep, b.write(ctx, false, func(st *api.BackupStatus) { st.RestoreTest = nil })
	}
	v := planTest(b.obj, &b.status, now)
	switch {
	case v.run && (b.due || b.job != nil && !b.job.yields):
		return loop.LongestSleep, nil // a newer backup comes, whose end wakes the loop
	case v.run && b.job != nil && now.Sub(b.job.begun) < tidyingPatience:
		keepTurn = true
		return b.job.begun.Add(tidyingPatience).Sub(now), nil
	case v.run:
	case v.next.IsZero():
		return loop.LongestSleep, nil
	default:
		return v.next.Sub(now), nil
	}
	owned := b.owned
	if b.job != nil {
		owned = nil // the retention is about to delete old ones, and never the newest
	}
	t := &restoreTest{cfg: &b.cfg, log: b.log, obj: b.obj.DeepCopy(), status: *b.status.DeepCopy(), began: now, point: pointOf(b.obj, &b.status, owned, now)}
	if err := b.write(ctx, true, func(st *api.BackupStatus) { beginTest(st, t) }); err != nil {
		return 0, err
	}
	b.testing = t
	t.turn, b.turn = b.turn, nil
	b.test = loop.Start(ctx, b.Wake, func(ctx context.Context) testResult {
		r, err := watchdog.Recover(t.log, func() testResult { return t.run(ctx) })
		if err != nil {
			return testResult{result: api.RestoreTestNotDone, reason: reasonOf(err), key: t.status.Key, point: t.point, began: t.began}
		}
		return r
	})
	return loop.LongestSleep, nil
}

// endTurn gives back the turn of a test that does not begin.
func (b *Backup) endTurn() {
	if b.turn != nil {
		b.turn()
		b.turn = nil
	}
}

// abandonedTest is a test whose operator has ended, if no other test follows that would remove what
// it has made; nil: there is none. A deleted EtcdBackup takes that along.
func (b *Backup) abandonedTest(now time.Time) *restoreTest {
	last := b.status.RestoreTest
	if last == nil || last.Result != api.RestoreTestRunning || b.obj.DeletionTimestamp != nil || planTest(b.obj, &b.status, now).run {
		return nil
	}
	return &restoreTest{cfg: &b.cfg, log: b.log, obj: b.obj.DeepCopy(), status: *b.status.DeepCopy(), began: now, abandoned: true}
}

// showWait shows what a test waits for, after it has waited for a while.
func (b *Backup) showWait(ctx context.Context, now time.Time) error {
	last := b.status.RestoreTest
	if now.Sub(b.testing.began) < testLook || last == nil || last.Result != api.RestoreTestRunning || b.obj.DeletionTimestamp != nil {
		return nil
	}
	reason := notice.Shorten("the test waits for "+b.testing.waitsFor(), 2000)
	if last.Reason == reason {
		return nil
	}
	return b.write(ctx, false, func(st *api.BackupStatus) {
		if st.RestoreTest != nil {
			st.RestoreTest.Reason = reason
		}
	})
}

func beginTest(st *api.BackupStatus, t *restoreTest) {
	if st.RestoreTest == nil {
		st.RestoreTest = &api.RestoreTestStatus{}
	}
	r := st.RestoreTest
	r.Result, r.Reason, r.Key = api.RestoreTestRunning, "", t.status.Key
	r.Revision, r.Seed = t.point.revision, t.point.seed
	r.StartDate, r.Duration = notice.Timestamp(t.began), nil
}

func showTest(st *api.BackupStatus, t *testResult) {
	if st.RestoreTest == nil {
		st.RestoreTest = &api.RestoreTestStatus{}
	}
	r := st.RestoreTest
	r.Result, r.Reason, r.Key = t.result, t.reason, t.key
	r.Revision, r.Seed = t.point.revision, t.point.seed
	r.StartDate, r.Duration = notice.Timestamp(t.began), &metav1.Duration{Duration: t.took.Round(time.Second)}
	if t.result == api.RestoreTestPassed {
		r.LastSuccessDate, r.LastSuccessKey = notice.Timestamp(t.began.Add(t.took)), t.key
		r.EtcdRevision, r.Keys = t.revision, t.keys
	}
}
