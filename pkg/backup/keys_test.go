// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Two EtcdBackups with one path may be due in the same second, and etcd at the same
// revision: by the names that v0.9.4 gave, both backups would have one key.

const anotherUID = "22222222-2222-2222-2222-222222222222"

// anothers is a backup of another EtcdBackup.
func anothers(key string) object {
	return object{nil, store.Object{Key: key, Modified: time.Now(), Metadata: map[string]string{
		backupobject.MetaUID: anotherUID, backupobject.MetaName: "ns/another",
	}}}
}

func TestABackupOnAScheduleReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		key := backupobject.Key("etcd", 2, time.Now())
		w.store.objects[key] = anothers(key)
		defer w.run()()
		own := backupobject.Key("etcd", 2, time.Now().Add(time.Second))
		if st := w.status(); !st.Succeeded || st.Key != "bucket/"+own || !slices.Equal(w.store.keys(), []string{key, own}) {
			t.Errorf("objects %q, status %+v", w.store.keys(), st)
		}
		if uid := w.store.objects[key].Metadata[backupobject.MetaUID]; uid != anotherUID {
			t.Errorf("the backup of %q was replaced", uid)
		}
	})
}

func TestBackupsThatAreStoredAtOnceHaveKeysOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		taken := backupobject.Key("etcd", 2, time.Now())
		if !w.cfg.Keys.take("bucket/" + taken) {
			t.Fatal("a key is taken that nobody has")
		}
		defer w.run()()
		if st := w.status(); !st.Succeeded || st.Key != "bucket/"+backupobject.Key("etcd", 2, time.Now().Add(time.Second)) {
			t.Errorf("status %+v", st)
		}
		if w.cfg.Keys.take("bucket/" + taken); len(w.cfg.Keys.taken) != 1 {
			t.Errorf("keys are taken that nobody stores under: %v", w.cfg.Keys.taken)
		}
	})
}

func TestABackupThatAnotherHasReplacedMeanwhileIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, policy := range map[string]*api.BackupPolicy{"once": nil, "on schedule": hourly} {
			w := newWorld(t, testBackup(policy))
			replaced := false
			w.replaceOnce(&replaced)
			stop := w.run()
			if st := w.status(); st.Succeeded || st.Phase != api.BackupPhaseRetrying {
				t.Errorf("%s: status %+v", name, st)
			}
			pass(time.Minute)
			if st := w.status(); !replaced || !st.Succeeded || w.Times("Backup Failed: store the backup: another EtcdBackup, ns/another, has put its own under bucket/etcd") != 1 {
				t.Errorf("%s: status %+v, events %q", name, st, w.Events())
			}
			stop()
		}
	})
}

// replaceOnce has another EtcdBackup put its own in the place of the first that is
// stored, before the store reports it.
func (w *world) replaceOnce(replaced *bool) {
	w.store.reported = func(o store.Object) store.Object {
		if !*replaced {
			*replaced = true
			w.store.objects[o.Key] = anothers(o.Key)
			o.Metadata = w.store.objects[o.Key].Metadata
		}
		return o
	}
}

func TestWhatBecameAnothersMeanwhileIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 2}))
		defer w.run()()
		first := w.store.keys()[0]
		w.store.mu.Lock()
		w.store.objects[first] = anothers(first)
		w.store.mu.Unlock()
		pass(5*time.Hour + time.Minute)
		if keys := w.store.keys(); len(keys) != 3 || !slices.Contains(keys, first) || w.status().Backups != 2 {
			t.Errorf("objects %q, status %+v; another's was %s", keys, w.status(), first)
		}
		if deleted, _ := w.metric("deleted_total"); deleted != 3 || w.Times("Old Backups Not Deleted") != 0 {
			t.Errorf("%v were counted, events %q", deleted, w.Events())
		}
	})
}

// What is looked at once more right before it is deleted may not answer.
func TestNothingIsDeletedOfWhichTheStoreDoesNotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 1}))
		defer w.run()()
		w.store.meddle(func(_ context.Context, operation, _ string) error {
			if operation == "stat" {
				return store.ErrDenied
			}
			return nil
		}, nil)
		pass(3*time.Hour + time.Minute)
		if n := len(w.store.keys()); n != 4 || w.Times("Old Backups Not Deleted") != 1 {
			t.Errorf("%d objects, events %q", n, w.Events())
		}
	})
}

func TestABackupInAnotherBucketIsNotTakenForOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 3}))
		defer w.run()()
		pass(2*time.Hour + time.Minute)
		// Another bucket, in which another EtcdBackup has stored at the same times.
		for _, key := range w.store.keys() {
			w.store.objects[key] = anothers(key)
		}
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.S3.Path = "other/etcd" })
		pass(3 * time.Hour)
		if keys := w.store.keys(); len(keys) != 6 || w.status().Backups != 3 || w.Times("Old Backups Deleted") != 0 {
			t.Errorf("objects %q, status %+v, events %q", keys, w.status(), w.Events())
		}
	})
}
