// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/store"

	"github.com/etcd-operator/etcd-operator/pkg/location"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// The tests of the loop run in bubbles of testing/synctest: time passes only when
// everybody waits for it, and a goroutine that is left behind is an error. Time
// begins on 1 January 2000 at midnight in UTC.

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) // of the bubble's time
	synctest.Wait()
}

func TestABackupIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		defer w.run()()
		st := w.status()
		if st.Phase != api.BackupPhaseSucceeded || !st.Succeeded || st.Reason != "" || st.Failures != 0 || st.ObservedGeneration != 1 {
			t.Errorf("status %+v", st)
		}
		if st.Key != "bucket/etcd" || st.EtcdRevision != 2 || st.EtcdVersion != "3.6.16" || st.Endpoint != "http://c-0:2379" || st.Size != 22 || len(st.SHA256) != 64 {
			t.Errorf("status %+v", st)
		}
		if st.LastSuccessDate == nil || st.LastExecutionDate == nil || st.NextExecutionDate != nil || st.LastScheduleDate != nil {
			t.Errorf("dates %+v", st)
		}
		if len(w.stored().Finalizers) > 0 {
			t.Error("a backup that is made once has a finalizer")
		}
		pass(24 * time.Hour)
		if n := w.store.count("put"); n != 1 {
			t.Errorf("%d backups were made", n)
		}
		if len(w.statuses) != 2 || w.statuses[0].Phase != api.BackupPhaseRunning {
			t.Errorf("statuses %+v", w.statuses)
		}
		if w.Times("Backup Succeeded: Stored revision 2 of etcd 3.6.16 from http://c-0:2379 as bucket/etcd") != 1 {
			t.Errorf("events %q", w.Events())
		}
	})
}

var hourly = &api.BackupPolicy{BackupIntervalInSecond: 3600}

func TestBackupsAreMadeOnSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.store.meddle(func(_ context.Context, operation, _ string) error {
			if operation == "put" && !slices.Contains(w.stored().Finalizers, api.BackupPeriodicFinalizer) {
				t.Error("the first backup is made before the finalizer is on")
			}
			return nil
		}, nil)
		defer w.run()()
		pass(2*time.Hour + time.Minute)
		want := []string{"etcd_v2_2000-01-01-00:00:00", "etcd_v3_2000-01-01-01:00:00", "etcd_v4_2000-01-01-02:00:00"}
		if got := w.store.keys(); !slices.Equal(got, want) {
			t.Errorf("objects %q, want %q", got, want)
		}
		st := w.status()
		if st.Phase != api.BackupPhaseWaiting || st.Backups != 3 || st.Key != "bucket/"+want[2] ||
			!st.LastScheduleDate.Equal(notice.Timestamp(at(t, "2000-01-01 02:00"))) || !st.NextExecutionDate.Equal(notice.Timestamp(at(t, "2000-01-01 03:00"))) {
			t.Errorf("status %+v", st)
		}
		metadata := w.store.objects[want[1]].Metadata
		for key, value := range map[string]string{
			"etcd-revision": "3", "etcd-version": "3.6.16", "etcd-endpoint": "http://c-0:2379", "backup-uid": string(testUID), "backup-name": "ns/b",
			"backup-generation": "1", "backup-scheduled": "2000-01-01T01:00:00Z", "backup-started": "2000-01-01T01:00:00Z", "size": "22", "duration": "0s", "etcd-linearizable": "true",
		} {
			if metadata[key] != value {
				t.Errorf("metadata %s is %q, want %q", key, metadata[key], value)
			}
		}
		if len(metadata["sha256"]) != 64 {
			t.Errorf("metadata sha256 is %q", metadata["sha256"])
		}
	})
}

func TestARestartNeitherSkipsNorDoublesABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{Schedule: "0 * * * *"}))
		for range 50 {
			stop := w.run()
			pass(7 * time.Minute)
			stop()
		}
		keys := w.store.keys() // 350 minutes
		if len(keys) != 5 {
			t.Errorf("in 350 minutes: %q", keys)
		}
		pass(10 * time.Hour)
		defer w.run()()
		if keys := w.store.keys(); len(keys) != 6 || w.status().LastScheduleDate.UTC().Hour() != 15 {
			t.Errorf("of those that were missed, the last was to be made: %q, %v", keys, w.status().LastScheduleDate)
		}
	})
}

func TestAFailureIsToldAndTriedAgainWithinItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.store.fail("put", fmt.Errorf("put: %w", store.ErrDenied))
		defer w.run()()
		st := w.status()
		if st.Phase != api.BackupPhaseRetrying || st.Succeeded || st.Failures != 1 || !st.NextExecutionDate.Equal(notice.Timestamp(at(t, "2000-01-01 00:00:05"))) {
			t.Errorf("status %+v", st)
		}
		if !strings.Contains(st.Reason, "correct the credentials that spec.s3 names") {
			t.Errorf("reason %q", st.Reason)
		}
		pass(59 * time.Minute)
		st = w.status()
		if st.LastScheduleDate != nil || st.Failures < 15 || st.Failures > 20 {
			t.Errorf("status %+v", st)
		}
		if w.Times("Backup Failed") != 1 {
			t.Errorf("events %q", w.Events())
		}
		w.store.fail("", nil)
		pass(5 * time.Minute)
		st = w.status()
		if st.Phase != api.BackupPhaseWaiting || !st.Succeeded || st.Reason != "" || st.Failures != 0 || !st.LastScheduleDate.Equal(notice.Timestamp(at(t, "2000-01-01 01:00"))) {
			t.Errorf("status %+v", st)
		}
		if len(w.store.keys()) != 1 || w.Times("failed attempts before it: ") != 1 {
			t.Errorf("objects %q, events %q", w.store.keys(), w.Events())
		}
	})
}

func TestABackupThatIsMadeOnceIsTriedUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		var up atomic.Bool
		w.openSnapshot = func(context.Context, snapshot.Source) error {
			if up.Load() {
				return nil
			}
			return errors.New("no member answers")
		}
		stop := w.run()
		pass(time.Hour)
		stop()
		defer w.run()()
		up.Store(true)
		pass(5 * time.Minute)
		if st := w.status(); st.Phase != api.BackupPhaseSucceeded || !st.Succeeded {
			t.Errorf("status %+v", st)
		}
	})
}

// Windows that are shorter than a pause after a failure are no reason to hurry.
func TestFailuresOfAnIntervalOfOneSecondAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 1}))
		w.store.fail("put", errors.New("down"))
		defer w.run()()
		pass(10 * time.Minute)
		if n := w.store.count("put"); n < 60 || n > 121 {
			t.Errorf("%d attempts in ten minutes", n)
		}
	})
}

func TestAnIntervalShorterThanABackupTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 10}))
		w.store.meddle(func(ctx context.Context, operation, _ string) error {
			if operation == "put" {
				select {
				case <-ctx.Done():
				case <-time.After(34 * time.Second): // of the bubble's time
				}
			}
			return nil
		}, nil)
		defer w.run()()
		pass(34*time.Second*10 + time.Second)
		if n := len(w.store.keys()); n != 10 {
			t.Errorf("%d backups: one at a time, one after the other, would be 10", n)
		}
	})
}

func TestOldBackupsOfOnesOwnAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 3})
		w := newWorld(t, obj)
		foreignKeys := []string{
			"etcd", "etcd2_v1_1999-01-01-00:00:00", "etcd_v1_1999-01-01-00:00:00.part", "etcd_v2_v1_1999-01-01-00:00:00",
			"etcd_v1_1999-01-01-00:00:00", // of v0.9.4
			"etcd_v1_1999-01-02-00:00:00", // of another EtcdBackup
		}
		for _, key := range foreignKeys {
			w.store.objects[key] = object{nil, store.Object{Key: key, Modified: at(t, "1999-01-01 00:00"), Metadata: map[string]string{}}}
		}
		w.store.objects[foreignKeys[5]].Metadata[backupobject.MetaUID] = "22222222-2222-2222-2222-222222222222"
		stop := w.run()
		pass(20*time.Hour + time.Minute)
		own := slices.DeleteFunc(w.store.keys(), func(key string) bool { return slices.Contains(foreignKeys, key) })
		if want := []string{"etcd_v20_2000-01-01-18:00:00", "etcd_v21_2000-01-01-19:00:00", "etcd_v22_2000-01-01-20:00:00"}; !slices.Equal(own, want) {
			t.Errorf("own objects %q, want %q", own, want)
		}
		if n := len(w.store.keys()); n != 3+len(foreignKeys) {
			t.Errorf("objects of others are gone: %q", w.store.keys())
		}
		if deleted, _ := w.metric("deleted_total"); deleted != 18 || w.Times("Old Backups Deleted: Deleted 1, and 3 are left: bucket/etcd_v2_2000-01-01-00:00:00") != 1 {
			t.Errorf("%v were counted, events %q", deleted, w.Events())
		}
		if w.status().Backups != 3 {
			t.Errorf("status %+v", w.status())
		}
		// Before it is stored, and before it is deleted; others once.
		if n := w.store.count("stat"); n != 21+18+2 {
			t.Errorf("%d questions about objects", n)
		}
		// Another process knows what is its own as well.
		stop()
		defer w.run()()
		pass(time.Hour)
		if n := len(w.store.keys()); n != 3+len(foreignKeys) || w.status().Backups != 3 {
			t.Errorf("objects %q", w.store.keys())
		}
	})
}

func TestBackupsThatCannotBeDeletedAreToldOnceAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 1}))
		w.store.fail("delete", fmt.Errorf("delete: %w", store.ErrDenied))
		defer w.run()()
		pass(4*time.Hour + time.Minute)
		st := w.status()
		if !st.Succeeded || st.Reason != "" || st.Backups != 5 || st.Phase != api.BackupPhaseWaiting {
			t.Errorf("the backups are well: status %+v", st)
		}
		if failed, _ := w.metric("retention_failed_total"); failed != 4 || w.Times("Old Backups Not Deleted") != 1 {
			t.Errorf("%v were counted, events %q", failed, w.Events())
		}
		w.store.fail("", nil)
		pass(time.Hour)
		if keys := w.store.keys(); len(keys) != 1 || w.status().Backups != 1 {
			t.Errorf("objects %q, status %+v", keys, w.status())
		}
	})
}

// A hold keeps some old backups, and all others go.
func TestLockedBackupsDoNotStopTheRetentionOfOthers(t *testing.T) {
	for name, locked := range map[string]error{
		"the store denies it":       store.ErrDenied,
		"a conflict":                &store.StatusError{Code: http.StatusConflict},
		"a precondition is not met": &store.StatusError{Code: http.StatusPreconditionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 1}))
				w.store.fail("delete", errors.New("down"))
				stop := w.run()
				defer stop()
				pass(2*time.Hour + time.Minute)
				held := w.store.keys()
				w.store.meddle(func(_ context.Context, operation, key string) error {
					if operation == "delete" && slices.Contains(held, key) {
						return fmt.Errorf("delete %s: %w", key, locked)
					}
					return nil
				}, nil)
				pass(10 * time.Hour)
				if keys := w.store.keys(); len(held) != 3 || len(keys) != 4 || w.status().Backups != 4 || w.Times("Old Backups Not Deleted") != 2 {
					t.Errorf("%d are held, objects %q, events %q", len(held), keys, w.Events())
				}
			})
		})
	}
}

// Where nothing answers, it is of no use to ask for each.
func TestRetentionEndsWhereTheStoreIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 1}))
		w.store.fail("delete", errors.New("down"))
		defer w.run()()
		pass(6*time.Hour + time.Minute)
		if n := w.store.count("delete"); n != 1+2+3+3+3+3 {
			t.Errorf("%d deletions were tried", n)
		}
	})
}

// hold makes the store keep uploads waiting until it is let go, or ctx ends and
// it has cleaned up, which takes a second.
func (w *world) hold() (letGo func()) {
	gate := make(chan struct{})
	w.store.meddle(func(ctx context.Context, operation, _ string) error {
		if operation != "put" {
			return nil
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			time.Sleep(time.Second) // of the bubble's time
			return context.Cause(ctx)
		}
	}, nil)
	return func() { close(gate) }
}

func TestTheStatusIsRunningWhileABackupIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		letGo := w.hold()
		defer w.run()()
		st := w.status()
		if running, _ := w.metric("running"); st.Phase != api.BackupPhaseRunning || running != 1 || st.LastExecutionDate == nil ||
			!st.NextExecutionDate.Equal(notice.Timestamp(at(t, "2000-01-01 01:00"))) {
			t.Errorf("status %+v, metric %v", st, running)
		}
		letGo()
		synctest.Wait()
		if running, _ := w.metric("running"); w.status().Phase != api.BackupPhaseWaiting || running != 0 {
			t.Errorf("status %+v, metric %v", w.status(), running)
		}
	})
}

func TestAnAttemptThatTakesTooLongIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{TimeoutInSecond: 90}))
		letGo := w.hold()
		defer w.run()()
		pass(92 * time.Second)
		st := w.status()
		if st.Phase != api.BackupPhaseRetrying || !strings.Contains(st.Reason, "not done after 1m30s, with 0.0 KiB of 0.0 KiB read: raise spec.backupPolicy.timeoutInSecond") {
			t.Errorf("status %+v", st)
		}
		letGo()
		pass(10 * time.Second)
		if st := w.status(); st.Phase != api.BackupPhaseSucceeded {
			t.Errorf("status %+v", st)
		}
	})
}

func TestAnEditStopsTheBackupUnderWayAndStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		w.hold()
		defer w.run()()
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.S3.Path = "bucket/elsewhere" })
		synctest.Wait()
		if n := w.store.count("put"); n != 1 {
			t.Errorf("%d uploads: the next must wait for the end of the first", n)
		}
		w.store.meddle(nil, nil)
		pass(2 * time.Second)
		if st := w.status(); st.Phase != api.BackupPhaseSucceeded || st.ObservedGeneration != 2 || st.Key != "bucket/elsewhere" || st.Failures != 0 {
			t.Errorf("status %+v", st)
		}
		if keys := w.store.keys(); !slices.Equal(keys, []string{"elsewhere"}) || w.Times("Backup Failed") > 0 {
			t.Errorf("objects %q, events %q", keys, w.Events())
		}
		if cancelled, _ := w.metric("attempts_total", `value:"cancelled"`); cancelled != 1 {
			t.Errorf("%v attempts were cancelled", cancelled)
		}
	})
}

func TestAnEditMakesAOneTimeBackupAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		defer w.run()()
		w.edit(func(obj *api.EtcdBackup) { obj.Labels = map[string]string{"a": "b"} })
		synctest.Wait()
		if n := w.store.count("put"); n != 1 {
			t.Errorf("a label is no edit of the spec: %d backups", n)
		}
		letGo := w.hold()
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.S3.Path = "bucket/again" })
		synctest.Wait()
		if st := w.status(); st.Phase != api.BackupPhaseRunning || st.Succeeded || st.Key != "bucket/etcd" {
			t.Errorf("status %+v: those who wait for the new one must not take the old one for it", st)
		}
		letGo()
		synctest.Wait()
		if st := w.status(); !st.Succeeded || st.Key != "bucket/again" {
			t.Errorf("status %+v", st)
		}
	})
}

func TestSuspendFinishesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		letGo := w.hold()
		defer w.run()()
		suspend := func(s bool) {
			w.edit(func(obj *api.EtcdBackup) {
				policy := *hourly
				policy.Suspend = s
				obj.Spec.BackupPolicy = &policy
			})
		}
		suspend(true)
		synctest.Wait()
		if st := w.status(); st.Phase != api.BackupPhaseRunning {
			t.Errorf("status %+v", st)
		}
		letGo()
		pass(5*time.Hour + time.Minute)
		if st := w.status(); st.Phase != api.BackupPhaseSuspended || !st.Succeeded || st.NextExecutionDate != nil || st.ObservedGeneration != 2 {
			t.Errorf("status %+v", st)
		}
		if n := w.store.count("put"); n != 1 || w.Times("Backup Suspended") != 1 {
			t.Errorf("%d backups, events %q", n, w.Events())
		}
		suspend(false)
		synctest.Wait()
		if st := w.status(); w.store.count("put") != 2 || st.LastScheduleDate.UTC().Hour() != 5 || w.Times("Backup Resumed") != 1 {
			t.Errorf("status %+v, events %q", st, w.Events())
		}
	})
}

func TestADeletionStopsTheBackupAndTakesTheFinalizerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.hold()
		defer w.run()()
		w.edit(func(obj *api.EtcdBackup) { obj.Finalizers = append(obj.Finalizers, "example.com/other") })
		synctest.Wait()
		w.remove()
		synctest.Wait()
		if !slices.Contains(w.stored().Finalizers, api.BackupPeriodicFinalizer) {
			t.Error("the finalizer is off while an upload is under way")
		}
		pass(2 * time.Second)
		if got := w.stored().Finalizers; !slices.Equal(got, []string{"example.com/other"}) {
			t.Errorf("finalizers %q", got)
		}
		pass(10 * time.Hour)
		if n := w.store.count("put"); n != 1 || len(w.store.keys()) > 0 {
			t.Errorf("%d uploads, objects %q", n, w.store.keys())
		}
	})
}

func TestAnObjectWithoutOtherFinalizersIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		defer w.run()()
		w.remove()
		synctest.Wait()
		if _, err := w.get(); !apierrors.IsNotFound(err) {
			t.Errorf("the object is there: %v", err)
		}
		if n := w.store.count("put"); n != 1 {
			t.Errorf("%d backups before the object was deleted", n)
		}
		pass(10 * time.Hour)
		if n := w.store.count("put"); n != 1 {
			t.Errorf("%d backups of an object that is gone", n-1)
		}
	})
}

func TestWithoutScheduleThereIsNoFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		defer w.run()()
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy = nil })
		synctest.Wait()
		if st := w.status(); len(w.stored().Finalizers) > 0 || st.Phase != api.BackupPhaseSucceeded || st.Key != "bucket/etcd" {
			t.Errorf("finalizers %q, status %+v", w.stored().Finalizers, st)
		}
	})
}

func TestASpecThatCannotBeFollowedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*api.BackupSpec)
		says string
	}{
		"an unknown store":          {func(s *api.BackupSpec) { s.StorageType = "FTP" }, `Unsupported value: "FTP"`},
		"a section that is missing": {func(s *api.BackupSpec) { s.S3 = nil }, "storageType S3 needs the section s3"},
		"a schedule that is none":   {func(s *api.BackupSpec) { s.BackupPolicy = &api.BackupPolicy{Schedule: "0 0 30 2 *"} }, "never comes"},
		"an endpoint that is none":  {func(s *api.BackupSpec) { s.EtcdEndpoints = []string{"ftp://c"} }, "spec.etcdEndpoints[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				obj := testBackup(nil)
				good := obj.Spec.DeepCopy()
				c.edit(&obj.Spec)
				w := newWorld(t, obj)
				defer w.run()()
				pass(time.Hour)
				st := w.status()
				if st.Phase != api.BackupPhaseInvalid || st.Succeeded || !strings.Contains(st.Reason, c.says) || !strings.Contains(st.Reason, "edit the EtcdBackup") || st.NextExecutionDate != nil {
					t.Errorf("status %+v", st)
				}
				if w.Times("Backup Invalid") != 1 || len(w.statuses) > 2 {
					t.Errorf("events %q, %d writes of the status", w.Events(), len(w.statuses))
				}
				w.edit(func(obj *api.EtcdBackup) { obj.Spec = *good })
				synctest.Wait()
				if st := w.status(); st.Phase != api.BackupPhaseSucceeded || st.Reason != "" || !st.Succeeded {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

func TestWhatV094HasMadeIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := testBackup(nil)
		obj.Status = api.BackupStatus{Succeeded: true, EtcdRevision: 7, EtcdVersion: "3.3.27"}
		w := newWorld(t, obj)
		defer w.run()()
		pass(time.Hour)
		if st := w.status(); w.store.count("put") != 0 || st.Phase != api.BackupPhaseSucceeded || st.EtcdRevision != 7 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestNothingIsLostWhileTheAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		letGo := w.hold()
		defer w.run()()
		w.apiDown.Store(true)
		letGo()
		pass(30 * time.Minute)
		if st := w.status(); st.Phase != api.BackupPhaseRunning || w.store.count("put") != 1 {
			t.Errorf("status %+v, %d uploads", st, w.store.count("put"))
		}
		w.apiDown.Store(false)
		pass(loop.LongestErrorWait + time.Second)
		st := w.status()
		if st.Phase != api.BackupPhaseWaiting || !st.Succeeded || st.Key != "bucket/etcd_v2_2000-01-01-00:00:00" || w.store.count("put") != 1 || !st.LastSuccessDate.Equal(notice.Timestamp(at(t, "2000-01-01 00:00"))) {
			t.Errorf("status %+v, %d uploads", st, w.store.count("put"))
		}
		// Away when the next is due: it is made when it is back.
		w.apiDown.Store(true)
		pass(time.Hour)
		w.apiDown.Store(false)
		pass(loop.LongestErrorWait + time.Second)
		if w.store.count("put") != 2 {
			t.Errorf("%d uploads", w.store.count("put"))
		}
	})
}

func TestWhatAnOperatorStoredBeforeItDiedIsFound(t *testing.T) {
	for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(policy))
				// The object is there, but the API server does not learn of it.
				w.store.meddle(nil, func(_ context.Context, operation, _ string) error {
					if operation == "put" {
						w.apiDown.Store(true)
					}
					return nil
				})
				stop := w.run()
				keys := w.store.keys()
				if len(keys) != 1 {
					t.Fatalf("objects %q", keys)
				}
				stop()
				w.apiDown.Store(false)
				w.store.meddle(nil, nil)
				pass(20 * time.Minute)
				if st := w.status(); st.Phase != api.BackupPhaseRunning {
					t.Fatalf("status %+v", st)
				}
				defer w.run()()
				st := w.status()
				if !st.Succeeded || st.Key != "bucket/"+keys[0] || st.EtcdRevision != 2 || st.EtcdVersion != "3.6.16" || st.Size != 22 || len(st.SHA256) != 64 ||
					!st.LastSuccessDate.Equal(notice.Timestamp(at(t, "2000-01-01 00:00"))) {
					t.Errorf("status %+v", st)
				}
				if !slices.Equal(w.store.keys(), keys) || w.store.count("put") != 1 || w.Times("which could not report it") != 1 {
					t.Errorf("objects %q, %d uploads, events %q", w.store.keys(), w.store.count("put"), w.Events())
				}
			})
		})
	}
}

func TestWhatWasStoredByAnotherSpecIsNotTakenForTheBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		w.store.meddle(nil, func(context.Context, string, string) error { w.apiDown.Store(true); return nil })
		w.run()()
		w.apiDown.Store(false)
		w.store.meddle(nil, nil)
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.EtcdEndpoints = []string{"http://another:2379"} })
		defer w.run()()
		if st := w.status(); !st.Succeeded || w.store.count("put") != 2 || st.EtcdRevision != 3 {
			t.Errorf("status %+v", st)
		}
	})
}

// A store may have done what it says has failed.
func TestAStoreThatLosesItsAnswerDoublesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.store.meddle(nil, func(_ context.Context, operation, _ string) error {
			if operation == "put" {
				return errors.New("connection reset")
			}
			return nil
		})
		defer w.run()()
		pass(time.Minute)
		if st := w.status(); !st.Succeeded || len(w.store.keys()) != 1 {
			t.Errorf("status %+v, objects %q", st, w.store.keys())
		}
	})
}

func TestTheEndOfTheOperatorIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.hold()
		w.run()()
		if st := w.status(); st.Phase != api.BackupPhaseRetrying || st.Failures != 0 || st.Reason == "" || len(w.store.keys()) > 0 {
			t.Errorf("status %+v, objects %q", st, w.store.keys())
		}
		w.store.meddle(nil, nil)
		defer w.run()()
		pass(time.Second)
		if st := w.status(); st.Phase != api.BackupPhaseWaiting || !st.Succeeded || st.Reason != "" {
			t.Errorf("status %+v", st)
		}
	})
}

func TestMoreBackupsThanSlotsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		for range slots {
			w.cfg.Slots.all <- struct{}{} // others
		}
		defer w.run()()
		pass(10 * time.Minute)
		if st := w.status(); st.Phase != api.BackupPhaseWaiting || w.store.count("put") != 0 || len(w.statuses) > 1 {
			t.Errorf("status %+v, %d writes of it", st, len(w.statuses))
		}
		<-w.cfg.Slots.all
		synctest.Wait()
		if st := w.status(); st.Phase != api.BackupPhaseSucceeded || len(w.cfg.Slots.all) != slots-1 {
			t.Errorf("status %+v, %d slots taken", st, len(w.cfg.Slots.all))
		}
	})
}

func TestABugInAnAttemptIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		w.openSnapshot = func(context.Context, snapshot.Source) error { panic("oh") }
		defer w.run()()
		if st := w.status(); st.Phase != api.BackupPhaseRetrying || !strings.Contains(st.Reason, "a bug") || len(w.cfg.Slots.all) != 0 {
			t.Errorf("status %+v, %d slots taken", st, len(w.cfg.Slots.all))
		}
	})
}

func TestMetricsOutliveARestartAndNotTheBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		stop := w.run()
		pass(time.Minute)
		stop()
		if _, there := w.metric("last_success_timestamp_seconds"); there {
			t.Error("the series of a backup that nobody manages is there")
		}
		w.store.fail("put", errors.New("down"))
		stop = w.run()
		success, _ := w.metric("last_success_timestamp_seconds")
		size, _ := w.metric("last_size_bytes")
		next, _ := w.metric("next_execution_timestamp_seconds")
		if midnight := float64(at(t, "2000-01-01 00:00").Unix()); success != midnight || size != 22 || next != midnight+3600 {
			t.Errorf("last success %v, size %v, next %v", success, size, next)
		}
		pass(time.Hour)
		failures, _ := w.metric("failures")
		if after, _ := w.metric("last_success_timestamp_seconds"); after != success || failures == 0 {
			t.Errorf("last success %v, failures %v", after, failures)
		}
		stop()
	})
}

// Another instance has written the status: what rests on ours is void.
func TestAnAttemptGivesWayToAnotherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		b := w.backup() // knows nothing of what follows
		w.run()()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		pass(time.Minute)
		if n := w.store.count("put"); n != 1 {
			t.Errorf("%d backups of one window", n)
		}
		cancel()
		running.Wait()
	})
}

func TestAnObjectThatWasMadeAnewIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		b := w.backup()
		w.edit(func(obj *api.EtcdBackup) { obj.UID = "another" })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		pass(time.Hour)
		cancel()
		running.Wait()
		if obj := w.stored(); len(obj.Finalizers) > 0 || obj.Status.Phase != "" || w.store.count("put") > 0 {
			t.Errorf("finalizers %q, status %+v", obj.Finalizers, obj.Status)
		}
	})
}

func TestWithoutQuorumABackupIsMadeAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		w.linearizable.Store(false)
		defer w.run()()
		if !w.status().Succeeded || w.Times("etcd has no quorum") != 1 {
			t.Errorf("events %q", w.Events())
		}
	})
}

func TestLeftoversAreSweptAfterFailuresAndBackupsOnSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 86400, TimeoutInSecond: 7200}))
		w.store.fail("put", errors.New("down"))
		defer w.run()()
		w.store.fail("", nil)
		pass(time.Minute)
		if want := []time.Time{at(t, "1999-12-31 00:00"), at(t, "1999-12-31 00:00:05")}; !slices.EqualFunc(w.store.swept, want, time.Time.Equal) {
			t.Errorf("swept what was begun before %v, want %v", w.store.swept, want)
		}
	})
}

func TestTheReasonNamesWhoFailed(t *testing.T) {
	for name, c := range map[string]struct {
		body, put error
		says      string
	}{
		"etcd breaks off":         {errors.New("the snapshot from http://c-0:2379 broke off"), nil, "take a snapshot of etcd: the snapshot from http://c-0:2379 broke off"},
		"no bucket":               {nil, store.ErrNoBucket, "store the backup: there is no such bucket: create it, or correct spec.s3.path"},
		"credentials are refused": {nil, store.ErrDenied, "correct the credentials that spec.s3 names, or their permissions"},
		"the store is down":       {nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, "store the backup: dial tcp: connection refused: check that the store is up"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(nil))
				w.store.fail("put", c.put)
				take := w.cfg.OpenSnapshot
				w.cfg.OpenSnapshot = func(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
					s, err := take(ctx, source)
					if c.body != nil {
						s.ReadCloser = io.NopCloser(iotest.ErrReader(c.body))
					}
					return s, err
				}
				defer w.run()()
				if st := w.status(); !strings.Contains(st.Reason, c.says) || st.Phase != api.BackupPhaseRetrying || len(w.store.keys()) > 0 {
					t.Errorf("phase %s, reason %q", st.Phase, st.Reason)
				}
			})
		})
	}
}

// early is a store that takes metadata only with the first bytes, as S3 does.
type early struct{ *memory }

func (e early) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	u.FinalMetadata = nil
	return e.memory.Put(ctx, key, u)
}

// What a store takes for the end without having heard it from the snapshot is not
// whole. The attempts that follow find it in the store, and don't take it for the
// backup either.
func TestABackupThatIsNotWholeIsNoSuccess(t *testing.T) {
	for name, of := range map[string]func(*memory) store.Store{
		"with its sum in the store": func(m *memory) store.Store { return m },
		"without":                   func(m *memory) store.Store { return early{m} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(nil))
				w.cfg.OpenLocation = func(context.Context, string, *api.BackupSpec) (*location.Location, error) {
					return &location.Location{Store: of(w.store), Bucket: "bucket", Key: "etcd"}, nil
				}
				take := w.cfg.OpenSnapshot
				w.cfg.OpenSnapshot = func(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
					s, err := take(ctx, source)
					s.SHA256 = func() string { return "" }
					return s, err
				}
				defer w.run()()
				for range 2 {
					if st := w.status(); st.Succeeded || st.LastSuccessDate != nil || !strings.Contains(st.Reason, "it is not whole") {
						t.Errorf("status %+v", st)
					}
					w.revision.Store(0) // what was left gives way also to less
					pass(10 * time.Minute)
				}
				if w.store.count("put") < 2 || len(w.store.keys()) != 1 {
					t.Errorf("%d attempts, the store holds %q: no attempt has found what another one left", w.store.count("put"), w.store.keys())
				}
			})
		})
	}
}
