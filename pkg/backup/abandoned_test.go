// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// hangIn makes the first of a kind of operations hang, whatever its context says,
// until it is let go.
func (w *world) hangIn(what string) (letGo func()) {
	gate, once := make(chan struct{}), make(chan struct{}, 1)
	once <- struct{}{}
	w.store.meddle(func(_ context.Context, operation, _ string) error {
		if operation != what {
			return nil
		}
		select {
		case <-once:
			<-gate
		default:
		}
		return nil
	}, nil)
	return func() { close(gate) }
}

func onVolume(policy *api.BackupPolicy) *api.EtcdBackup {
	obj := testBackup(policy)
	obj.Spec.StorageType = api.BackupStorageTypeVolume
	obj.Spec.BackupSource = api.BackupSource{Volume: &api.VolumeBackupSource{Path: "dir/etcd"}}
	return obj
}

func TestAVolumeThatHangsHoldsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, onVolume(hourly))
		letGo := w.hangIn("put")
		defer w.run()()
		pass(time.Minute + watchdog.GracePeriod - time.Second)
		if st := w.status(); st.Phase != api.BackupPhaseRunning || len(w.cfg.Slots.all) != 1 {
			t.Fatalf("status %+v", st)
		}
		pass(2 * time.Second)
		says := func() {
			t.Helper()
			if st := w.status(); st.Phase != api.BackupPhaseRetrying || st.Succeeded || !strings.Contains(st.Reason, "the volume does not answer") || len(w.cfg.Slots.all) != 0 {
				t.Errorf("status %+v, %d slots taken", st, len(w.cfg.Slots.all))
			}
		}
		says()
		pass(5 * time.Hour)
		says()
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.EtcdEndpoints = []string{"http://another:2379"} })
		pass(5 * time.Hour)
		says()
		if n := w.store.count("put"); n != 1 || w.Times("the volume does not answer") != 1 {
			t.Errorf("%d uploads though the first has not returned, events %q", n, w.Events())
		}
		letGo()
		synctest.Wait()
		if st := w.status(); !st.Succeeded || st.Reason != "" || st.Phase != api.BackupPhaseWaiting || st.ObservedGeneration != 2 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestAVolumeThatHangsHoldsNoDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, onVolume(hourly))
		letGo := w.hangIn("put")
		defer w.run()()
		defer letGo()
		synctest.Wait()
		if n := w.store.count("put"); n != 1 {
			t.Fatalf("%d uploads, and one was to hang", n)
		}
		w.remove()
		pass(watchdog.GracePeriod + time.Second)
		if _, err := w.get(); !apierrors.IsNotFound(err) {
			t.Errorf("the object is there: %v", err)
		}
	})
}

func TestAVolumeThatHangsHoldsNotTheEndOfTheOperator(t *testing.T) {
	for _, operation := range []string{"put", "sweep"} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, onVolume(hourly))
				letGo := w.hangIn(operation)
				stop := w.run()
				synctest.Wait()
				if n := w.store.count(operation); n != 1 {
					t.Errorf("%d of the operation that was to hang", n)
				}
				endsInTime(t, stop)
				letGo()
			})
		})
	}
}

// endsInTime checks that an operator ends, although something hangs.
func endsInTime(t *testing.T, stop func()) {
	t.Helper()
	began := time.Now()
	stop()
	if took := time.Since(began); took > watchdog.GracePeriod+shutdownTimeout {
		t.Errorf("it took %s", took)
	}
}

func TestNothingIsBegunWhileTheTidyingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, onVolume(hourly))
		letGo := w.hangIn("sweep")
		defer w.run()()
		pass(10 * time.Hour)
		if st := w.status(); w.store.count("put") != 1 || st.Succeeded || !strings.Contains(st.Reason, "the volume does not answer") {
			t.Errorf("status %+v", st)
		}
		letGo()
		synctest.Wait()
		if st := w.status(); w.store.count("put") != 2 || !st.Succeeded || st.Reason != "" {
			t.Errorf("status %+v", st)
		}
	})
}

func TestAWindowThatIsDueStopsTheTidying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 2}))
		slow := false
		w.store.meddle(func(ctx context.Context, operation, _ string) error {
			if operation == "sweep" && slow {
				<-ctx.Done()
			}
			if operation == "delete" && slow {
				select {
				case <-ctx.Done():
				case <-time.After(25 * time.Second): // of the bubble's time
				}
			}
			return nil
		}, nil)
		for i := range 12 {
			key := backupobject.Key("etcd", int64(i), time.Now().Add(-time.Duration(i+1)*time.Hour))
			w.store.objects[key] = object{nil, store.Object{Key: key, Modified: time.Now().Add(-time.Duration(i+1) * time.Hour), Metadata: map[string]string{backupobject.MetaUID: string(testUID)}}}
		}
		slow = true
		defer w.run()()
		pass(30*time.Minute + 35*time.Second)
		if n := w.store.count("put"); n != 31 {
			t.Errorf("%d backups in 30 minutes", n)
		}
		if n := len(w.store.keys()); n > 12 {
			t.Errorf("%d objects are left: what was done counts", n)
		}
		if failed, _ := w.metric("retention_failed_total"); failed > 0 || w.Times("Not Deleted") > 0 {
			t.Errorf("%v were counted, events %q", failed, w.Events())
		}
	})
}

func TestTidyingThatComesFurtherIsNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		needs  time.Duration // for each object
		failed float64
	}{"slow": {20 * time.Second, 0}, "stuck": {time.Hour, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 2}))
				for i := range 20 {
					key := backupobject.Key("etcd", int64(i), time.Now().Add(-time.Duration(i+1)*time.Hour))
					w.store.objects[key] = object{nil, store.Object{Key: key, Modified: time.Now(), Metadata: map[string]string{backupobject.MetaUID: "another"}}}
				}
				w.store.meddle(func(ctx context.Context, operation, _ string) error {
					if operation != "stat" {
						return nil
					}
					select {
					case <-ctx.Done():
					case <-time.After(c.needs): // of the bubble's time
					}
					return nil
				}, nil)
				defer w.run()()
				pass(90 * time.Minute)
				if failed, _ := w.metric("retention_failed_total"); failed != c.failed {
					t.Errorf("%v were counted, events %q", failed, w.Events())
				}
				if w.status().Backups != 2 { // made since the last count, or counted
					t.Errorf("status %+v", w.status())
				}
			})
		})
	}
}

func TestWhereNothingIsToBeDeletedNoFailureIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.store.objects["other"] = object{}
		w.store.fail("list", fmt.Errorf("list: %w", store.ErrDenied))
		defer w.run()()
		pass(2 * time.Hour)
		if failed, _ := w.metric("retention_failed_total"); failed > 0 || w.Times("Old Backups") > 0 || !w.status().Succeeded {
			t.Errorf("%v were counted, events %q", failed, w.Events())
		}
	})
}

func TestOnlyWhatWasSentToAStoreIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.openSnapshot = func(context.Context, snapshot.Source) error { return errors.New("etcd is down") }
		defer w.run()()
		pass(time.Hour)
		if n := w.store.count("sweep"); n > 0 || w.status().Failures < 10 {
			t.Errorf("%d sweeps, status %+v", n, w.status())
		}
	})
}

func TestBackupsThatHoldAllWritesOutliveThoseThatDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 3, MaxAgeInSecond: 5 * 3600}))
		stop := w.run()
		pass(2*time.Hour + time.Minute)
		whole := w.store.keys()
		if uncertain, reported := w.metric("last_success_uncertain"); uncertain != 0 || !reported || w.status().Uncertain {
			t.Errorf("metric %v, status %+v", uncertain, w.status())
		}
		stop()
		w.linearizable.Store(false)
		stop = w.run()
		pass(20 * time.Hour)
		keys := w.store.keys()
		if len(keys) != 6 || !containsAll(keys, whole) {
			t.Errorf("objects %q, of which %q were to be kept, and three without quorum", keys, whole)
		}
		if uncertain, _ := w.metric("last_success_uncertain"); uncertain != 1 || !w.status().Uncertain || w.status().Backups != 6 {
			t.Errorf("metric %v, status %+v", uncertain, w.status())
		}
		stop()
		w.linearizable.Store(true)
		defer w.run()()
		pass(time.Hour)
		keys = w.store.keys()
		// Of those that hold all writes the three are too old now; three that don't
		// are not yet.
		if len(keys) != 4 || w.status().Uncertain || slices.Contains(keys, whole[2]) {
			t.Errorf("objects %q, status %+v", keys, w.status())
		}
	})
}

func containsAll(keys, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(key string) bool { return !slices.Contains(keys, key) })
}

func TestABackupWithoutQuorumThatIsFoundIsToldAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.linearizable.Store(false)
		w.store.meddle(nil, func(_ context.Context, operation, _ string) error {
			if operation == "put" {
				return errors.New("connection reset")
			}
			return nil
		})
		defer w.run()()
		pass(time.Minute)
		if st := w.status(); !st.Succeeded || !st.Uncertain || len(w.store.keys()) != 1 {
			t.Errorf("status %+v", st)
		}
	})
}
