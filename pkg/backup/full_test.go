// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// fullWorld has four backups, one an hour, in a store that takes no more for a reason.
func fullWorld(t *testing.T, maxBackups int, maxAge time.Duration, why error) (w *world, stop func()) {
	w = newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: maxBackups, MaxAgeInSecond: int64(maxAge.Seconds())}))
	stop = w.run()
	pass(3*time.Hour + time.Minute)
	if n := len(w.store.keys()); n != 4 {
		t.Fatalf("%d backups", n)
	}
	w.store.fail("put", fmt.Errorf("put: %w", why))
	return w, stop
}

// To keep fewer backups is what the status advises.
func TestFewerBackupsMakeRoomInAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := fullWorld(t, 4, 0, store.ErrFull)
		defer stop()
		before := w.store.keys()
		pass(2 * time.Hour)
		if got := w.store.keys(); !slices.Equal(got, before) {
			t.Errorf("%q were to be kept, and %q are left", before, got)
		}
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.MaxBackups = 2 })
		pass(10 * time.Minute)
		if got := w.store.keys(); !slices.Equal(got, before[2:]) || w.status().Backups != 2 || w.Times("Old Backups Deleted") != 1 {
			t.Errorf("of %q, %q are left, status %+v, events %q", before, got, w.status(), w.Events())
		}
		w.store.fail("", nil)
		pass(10 * time.Minute)
		if st := w.status(); !st.Succeeded || st.Backups != 2 {
			t.Errorf("there is room, and the status is %+v", st)
		}
	})
}

func TestAFullStoreKeepsAllElse(t *testing.T) {
	for name, tc := range map[string]struct {
		why        error
		max, fewer int
		age        time.Duration
		change     func(w *world)
		left       int
	}{
		"that is old":                    {why: store.ErrFull, age: 4 * time.Hour, left: 4},
		"that is old, and not too many":  {why: store.ErrFull, max: 4, fewer: 3, age: 4 * time.Hour, left: 3},
		"if it does not say that":        {why: errors.New("it is down"), max: 4, fewer: 2, left: 4},
		"while it is suspended":          {why: store.ErrFull, max: 4, fewer: 2, left: 4, change: func(w *world) { w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = true }) }},
		"after what must not be trusted": {why: errors.Join(store.ErrFull, store.ErrLeft), max: 4, fewer: 2, left: 4},
		"without a limit":                {why: store.ErrFull, left: 4},
		"after the loss of the quorum":   {why: store.ErrFull, max: 4, fewer: 2, left: 4, change: func(w *world) { w.linearizable.Store(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, stop := fullWorld(t, tc.max, tc.age, tc.why)
				defer stop()
				before := w.store.keys()
				if tc.change != nil {
					tc.change(w)
				}
				if tc.fewer > 0 {
					w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.MaxBackups = tc.fewer })
				}
				pass(12 * time.Hour)
				if got := w.store.keys(); !slices.Equal(got, before[4-tc.left:]) {
					t.Errorf("of %q, %q are left", before, got)
				}
			})
		})
	}
}

// The backups of the last days may all lack writes.
func TestAFullStoreKeepsCompleteBackupsWithoutAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 4}))
		stop := w.run()
		defer stop()
		pass(3*time.Hour + time.Minute)
		complete := w.store.keys()
		w.linearizable.Store(false)
		pass(3 * time.Hour)
		all := w.store.keys()
		w.store.fail("put", fmt.Errorf("put: %w", store.ErrFull))
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.MaxBackups = 1 })
		pass(time.Hour)
		left := w.store.keys()
		for _, key := range complete {
			if !slices.Contains(left, key) {
				t.Errorf("%s is gone", key)
			}
		}
		if len(complete) != 4 || len(all) != 7 || len(left) != 5 || !slices.Contains(left, all[6]) {
			t.Errorf("of %q, %q are left", all, left)
		}
		// The last backup on record is still uncertain.
		w.linearizable.Store(true)
		pass(10 * time.Minute)
		if got := w.store.keys(); !slices.Equal(got, []string{complete[3], all[6]}) {
			t.Errorf("the quorum is back, and of %q, %q are left", left, got)
		}
		w.store.fail("", nil)
		pass(10 * time.Minute)
		if st := w.status(); !st.Succeeded || st.Uncertain {
			t.Errorf("there is room, and the status is %+v", st)
		}
	})
}

// Somebody has deleted it, or the store lies. The next backup decides what is surplus.
func TestAFullStoreWithoutTheLastBackupKeepsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := fullWorld(t, 4, 0, store.ErrFull)
		defer stop()
		before := w.store.keys()
		w.store.mu.Lock()
		delete(w.store.objects, before[3])
		w.store.mu.Unlock()
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.MaxBackups = 1 })
		pass(12 * time.Hour)
		if got := w.store.keys(); !slices.Equal(got, before[:3]) {
			t.Errorf("of %q, %q are left", before[:3], got)
		}
	})
}
