// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// What was stored before a crash is found also where the next operator has no slot
// at first, and shows that it waits.
func TestWhatWasStoredIsFoundAfterAWaitForASlot(t *testing.T) {
	for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(policy))
				w.store.meddle(nil, func(context.Context, string, string) error { w.apiDown.Store(true); return nil })
				w.run()()
				w.apiDown.Store(false)
				w.store.meddle(nil, nil)
				for range slots {
					w.cfg.Slots.all <- struct{}{}
				}
				defer w.run()()
				pass(2 * time.Minute)
				if st := w.status(); st.Phase == api.BackupPhaseRunning {
					t.Errorf("nothing runs, and the status says %s", st.Phase)
				}
				for range slots {
					<-w.cfg.Slots.all
				}
				pass(time.Minute)
				if st := w.status(); !st.Succeeded || w.store.count("put") != 1 {
					t.Errorf("%d uploads, status %+v", w.store.count("put"), st)
				}
			})
		})
	}
}

func TestSlotsAreGivenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(false)
		for range slots {
			s.all <- struct{}{}
		}
		var claims []*claim
		for range 5 {
			claims = append(claims, s.claim(t.Context(), "ns", func() {}))
			synctest.Wait()
		}
		claims[1].drop()
		for i, c := range claims {
			if i == 1 {
				continue
			}
			<-s.all
			synctest.Wait()
			if !c.take() {
				t.Fatalf("the slot was not given to number %d", i)
			}
			c.drop() // the slot has been taken, and stays
			if len(s.all) != slots {
				t.Fatal("the slot was given back")
			}
		}
		woken := false
		untaken := s.claim(t.Context(), "ns", func() { woken = true })
		<-s.all
		synctest.Wait()
		if !woken || !untaken.isGranted() {
			t.Error("nobody learns of the slot")
		}
		untaken.drop()
		if len(s.all) != slots-1 {
			t.Error("a slot that nobody took is lost")
		}
	})
}

// broken is a store that keeps half an object, says so, and can't remove it.
type broken struct{ *memory }

func (b broken) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	if _, err := b.memory.Put(ctx, key, u); err != nil {
		return store.Object{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	half := b.objects[key]
	half.Size /= 2
	b.objects[key] = half
	return store.Object{}, errors.New("half of it is stored, and can't be removed")
}

func TestHalfABackupIsNotTakenForOne(t *testing.T) {
	for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(policy))
				w.cfg.OpenLocation = func(context.Context, string, *api.BackupSpec) (*location.Location, error) {
					return &location.Location{Store: broken{w.store}, Bucket: "bucket", Key: "etcd"}, nil
				}
				defer w.run()()
				pass(10 * time.Minute)
				if st := w.status(); st.Succeeded || st.Phase != api.BackupPhaseRetrying || st.LastSuccessDate != nil {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

func TestCredentialsThatMayOnlyStoreAreGoodEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.store.objects["other"] = object{}
		w.store.meddle(func(_ context.Context, operation, _ string) error {
			if operation == "list" || operation == "stat" {
				return fmt.Errorf("%s: %w", operation, store.ErrDenied)
			}
			return nil
		}, nil)
		w.openSnapshot = func() func(context.Context, snapshot.Source) error {
			failed := false
			return func(context.Context, snapshot.Source) error {
				if failed {
					return nil
				}
				failed = true
				return errors.New("etcd is down for a moment")
			}
		}()
		defer w.run()()
		pass(time.Minute)
		if st := w.status(); !st.Succeeded || w.store.count("put") != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestAStoreThatCannotBeOpenedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(nil))
		w.openLocation = func() error { return fmt.Errorf("%w: Secret aws does not exist", location.ErrSecret) }
		defer w.run()()
		pass(time.Minute)
		if failed, _ := w.metric("retention_failed_total"); failed > 0 || w.Times("Old Backups") > 0 || w.Times("Backup Failed") != 1 {
			t.Errorf("%v were counted, events %q", failed, w.Events())
		}
	})
}

func TestTidyingGivesWayToTheNextBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 60, MaxBackups: 4}))
		for i := range 4000 {
			key := backupobject.Key("etcd", int64(i), time.Now().Add(-time.Duration(i+1)*time.Minute))
			w.store.objects[key] = object{nil, store.Object{Key: key, Modified: time.Now(), Metadata: map[string]string{backupobject.MetaUID: "another"}}}
		}
		w.store.meddle(func(_ context.Context, operation, _ string) error {
			if operation == "stat" {
				time.Sleep(50 * time.Millisecond) // of the bubble's time
			}
			return nil
		}, nil)
		defer w.run()()
		pass(20*time.Minute + 45*time.Second)
		if n := w.store.count("put"); n != 21 {
			t.Errorf("%d backups in 20 minutes", n)
		}
		if own := len(w.store.keys()) - 4000; own != 4 || w.status().Backups != 4 {
			t.Errorf("%d backups are left, status %+v", own, w.status())
		}
	})
}

func TestBackupsWithoutQuorumTakeNoOthersPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 1}))
		stop := w.run()
		pass(time.Minute)
		whole := w.store.keys()
		stop()
		w.linearizable.Store(false)
		stop = w.run()
		pass(2 * time.Hour)
		stop()
		if keys := w.store.keys(); len(keys) != 2 || !slices.Contains(keys, whole[0]) {
			t.Errorf("objects %q", keys)
		}
		w.linearizable.Store(true)
		defer w.run()()
		pass(time.Hour)
		if keys := w.store.keys(); len(keys) != 2 || slices.Contains(keys, whole[0]) {
			t.Errorf("objects %q", keys)
		}
	})
}
