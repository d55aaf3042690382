//go:build !race

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// restoring is an EtcdRestore of the path that a test's EtcdBackup has.
func (w *logWorld) restoring(namespace string, change func(*api.EtcdRestore)) *api.EtcdRestore {
	w.t.Helper()
	r := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: namespace, UID: "r", CreationTimestamp: metav1.Now()}}
	r.Spec.BackupStorageType, r.Spec.Pick = api.BackupStorageTypeS3, api.RestorePickNewest
	r.Spec.S3 = &api.S3BackupSource{Path: "bucket/etcd"}
	r.Status.Phase = api.RestorePhaseVerifying
	if change != nil {
		change(r)
	}
	if err := w.etcd.Tracker().Add(r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// ends is the end of a restore.
func (w *logWorld) ends(r *api.EtcdRestore, phase api.RestorePhase) {
	w.t.Helper()
	r = r.DeepCopy()
	r.Status.Phase, r.Status.ObservedGeneration = phase, edits(r)
	if err := w.etcd.Tracker().Update(restoresResource, r, r.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

func twoOfTen(s *api.BackupSpec) {
	s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 2
}

// Its first member reads the backup when the old cluster is gone: nothing else has the data then.
func TestTheRetentionKeepsWhatARestoreHasChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, twoOfTen)
		stop := w.run()
		defer stop()
		w.write(25 * time.Minute)
		chosen := w.status()
		revision := chosen.EtcdRevision
		restore := w.restoring("staging", func(r *api.EtcdRestore) {
			r.Status.Phase = api.RestorePhaseStarting
			r.Status.Backup = &api.RestoredBackup{Key: chosen.Key, ClusterID: fmt.Sprintf("%016x", testCluster), EtcdRevision: revision, Revision: revision + 500}
		})
		w.write(60 * time.Minute)
		if got := w.backups(); len(got) != 3 || got[0] != revision {
			t.Errorf("the backups are %v, and the restore reads that of revision %d", got, revision)
		}
		at, _ := w.member.Position(t.Context())
		if r := w.log(testCluster, revision); at.Revision-r.Last > 20 {
			t.Errorf("the log after the backup that is read ends with %d of %d", r.Last, at.Revision)
		}
		w.ends(restore, api.RestorePhaseSucceeded)
		w.write(11 * time.Minute)
		got := w.backups()
		if len(got) != 2 || got[0] == revision {
			t.Errorf("after the restore, the backups are %v", got)
		}
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		for key := range w.store.objects {
			if k, ours := changelog.ParseKey("etcd", key); ours && k.Last < got[0] {
				t.Errorf("%s is of no use", key)
			}
		}
	})
}

func TestAFullStoreKeepsWhatARestoreReads(t *testing.T) {
	for name, chosen := range map[string]bool{"it has chosen": true, "it chooses": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, stop := fullWorld(t, 4, 0, store.ErrFull)
				defer stop()
				before := w.store.keys()
				want := before
				(&logWorld{world: w}).restoring("staging", func(r *api.EtcdRestore) {
					if chosen {
						r.Status.Phase = api.RestorePhaseStarting
						r.Status.Backup = &api.RestoredBackup{Key: "bucket/" + before[0]}
						want = []string{before[0], before[3]}
					}
				})
				w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.MaxBackups = 1 })
				pass(2 * time.Hour)
				if got := w.store.keys(); !slices.Equal(got, want) {
					t.Errorf("of %q, %q are left", before, got)
				}
			})
		})
	}
}

func TestTheRetentionWaitsForARestoreThatChooses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*api.EtcdRestore)
		waits  bool
	}{
		"by the path":    {waits: true},
		"by a key":       {func(r *api.EtcdRestore) { r.Spec.Pick, r.Spec.S3.Path = "", "bucket/etcd_v12_2000-01-01-00:00:00" }, true},
		"from elsewhere": {func(r *api.EtcdRestore) { r.Spec.S3.Path = "bucket/etcd2" }, false},
		"again, since an edit": {func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase = 3, api.RestorePhaseCreating
			r.Status.Backup = &api.RestoredBackup{Generation: 2, Key: "bucket/etcd_v99_2000-01-01-00:00:00"}
		}, true},
		"again, since an edit before its deletion": {func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase, r.DeletionTimestamp, r.Finalizers = 4, api.RestorePhaseCreating, new(metav1.Now()), []string{api.RestoreFinalizer}
			r.Status.Backup = &api.RestoredBackup{Generation: 2, Key: "bucket/etcd_v99_2000-01-01-00:00:00"}
		}, true},
		"no more, and it is deleted": {func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase, r.DeletionTimestamp, r.Finalizers = 3, api.RestorePhaseCreating, new(metav1.Now()), []string{api.RestoreFinalizer}
			r.Status.Backup = &api.RestoredBackup{Generation: 2, Key: "bucket/etcd_v99_2000-01-01-00:00:00"}
		}, false},
		"nobody has handled it for two days": {func(r *api.EtcdRestore) {
			r.CreationTimestamp = metav1.NewTime(time.Now().Add(-48 * time.Hour))
		}, false},
		"it has failed": {func(r *api.EtcdRestore) { r.Status.Phase = api.RestorePhaseFailed }, false},
		"it has failed, and an edit is not seen yet": {func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase, r.Status.ObservedGeneration = 2, api.RestorePhaseFailed, 1
			r.Spec.Pick, r.Spec.S3.Path = "", "bucket/etcd_v12_2000-01-01-00:00:00"
		}, true},
		"it was invalid, and an edit is not seen yet": {func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase, r.Status.ObservedGeneration = 2, api.RestorePhaseInvalid, 1
			r.CreationTimestamp = metav1.NewTime(time.Now().Add(-48 * time.Hour))
		}, true},
		"it retries for two days, and an edit is not seen yet": {func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase, r.Status.ObservedGeneration = 2, api.RestorePhaseRetrying, 1
			r.Status.StartDate = new(metav1.NewTime(time.Now().Add(-48 * time.Hour)))
		}, true},
		"it has failed, and is deleted": {func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase, r.Status.ObservedGeneration = 2, api.RestorePhaseFailed, 1
			r.DeletionTimestamp, r.Finalizers = new(metav1.Now()), []string{api.RestoreFinalizer}
		}, false},
		"v0.9.4 has done it": {func(r *api.EtcdRestore) { r.Status.Phase, r.Status.Succeeded = "", true }, false},
		"it tests the newest backup": {func(r *api.EtcdRestore) {
			r.OwnerReferences = []metav1.OwnerReference{{Kind: api.EtcdBackupResourceKind, UID: testUID}}
			r.Labels, r.Spec.ClusterTemplate = map[string]string{api.RestoreTestLabel: string(testUID)}, &api.ClusterTemplate{}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, twoOfTen)
				stop := w.run()
				defer stop()
				w.writeEvery(10*time.Second, 25*time.Minute)
				before := w.backups()
				restore := w.restoring("ns", tc.change)
				w.writeEvery(10*time.Second, 20*time.Minute)
				if got := w.backups(); slices.Contains(got, before[0]) != tc.waits {
					t.Errorf("%v became %v", before, got)
				}
				if w.log(testCluster, before[0]).Last > before[0] != tc.waits {
					t.Errorf("the log ends with %d", w.log(testCluster, before[0]).Last)
				}
				w.ends(restore, api.RestorePhaseFailed)
				w.write(11 * time.Minute)
				if got := w.backups(); len(got) != 2 {
					t.Errorf("after it: %v", got)
				}
			})
		})
	}
}

// The first member may still fetch what it had chosen, and the restore repeats that one.
func TestTheRetentionKeepsWhatARestoreHasChosenBeforeAnEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, twoOfTen)
		stop := w.run()
		defer stop()
		w.write(25 * time.Minute)
		chosen := w.status()
		w.restoring("staging", func(r *api.EtcdRestore) {
			r.Generation, r.Status.Phase = 2, api.RestorePhaseStarting
			r.Spec.S3.Path = "elsewhere/etcd"
			r.Status.Backup = &api.RestoredBackup{Generation: 1, Key: chosen.Key, ClusterID: fmt.Sprintf("%016x", testCluster), EtcdRevision: chosen.EtcdRevision}
		})
		w.write(60 * time.Minute)
		if got := w.backups(); len(got) != 3 || got[0] != chosen.EtcdRevision {
			t.Errorf("the backups are %v, and the restore reads that of revision %d", got, chosen.EtcdRevision)
		}
	})
}

// An edit has no date. The operator counts from when it saw it.
func TestTheRetentionWaitsForAnEditedRestoreForADay(t *testing.T) {
	of, now, again := testBackup(&api.BackupPolicy{BackupIntervalInSecond: 600}), time.Now(), choices{}
	r := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns", UID: "r", Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-48 * time.Hour))}}
	r.Spec.BackupStorageType, r.Spec.S3 = api.BackupStorageTypeS3, &api.S3BackupSource{Path: "bucket/etcd_v12_2000-01-01-00:00:00"}
	r.Status.Phase, r.Status.Backup = api.RestorePhaseCreating, &api.RestoredBackup{Generation: 1, Key: "bucket/etcd_v99_2000-01-02-00:00:00"}
	look := func(after time.Duration) readers {
		found := readers{chosen: map[string]string{}, from: map[string]int64{}, again: again}
		found.add(r, of, now.Add(after))
		return found
	}
	for _, c := range []struct {
		generation int64
		after      time.Duration
		waits      bool
	}{{2, 0, true}, {2, choosingLimit - 1, true}, {2, choosingLimit, false}, {3, choosingLimit, true}, {3, 2*choosingLimit - 1, true}, {3, 2 * choosingLimit, false}} {
		r.Generation = c.generation
		found := look(c.after)
		if waits := found.reads("bucket/etcd_v12_2000-01-01-00:00:00") != ""; waits != c.waits {
			t.Errorf("generation %d after %s: %t", c.generation, c.after, waits)
		}
		if found.reads("bucket/etcd_v99_2000-01-02-00:00:00") == "" {
			t.Errorf("generation %d after %s: nothing keeps what it has chosen", c.generation, c.after)
		}
	}
	if again.forget(nil); len(again) > 0 {
		t.Errorf("the restore is gone, and known are %v", again)
	}
}

// A restore that no operator has seen may begin until a day after the last write to it. The retention counted
// from its creation, and could delete the backup that somebody had just put into its spec.
func TestTheRetentionWaitsForARestoreThatNobodyHasSeen(t *testing.T) {
	of, now := testBackup(&api.BackupPolicy{BackupIntervalInSecond: 600}), time.Now()
	at := func(before time.Duration) *metav1.Time {
		written := metav1.NewTime(now.Add(-before))
		return &written
	}
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		waits  bool
	}{
		"written when it was created": {},
		"edited since":                {[]metav1.ManagedFieldsEntry{{Manager: "kubectl-create", Time: at(48 * time.Hour)}, {Manager: "kubectl-edit", Time: at(23 * time.Hour)}}, true},
		"edited long ago":             {[]metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Time: at(25 * time.Hour)}}, false},
		"only its status was written": {[]metav1.ManagedFieldsEntry{{Manager: "somebody", Subresource: "status", Time: at(time.Hour)}}, false},
	} {
		r := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns", UID: "r", Generation: 2, CreationTimestamp: *at(48 * time.Hour), ManagedFields: c.fields}}
		r.Spec.BackupStorageType, r.Spec.S3 = api.BackupStorageTypeS3, &api.S3BackupSource{Path: "bucket/etcd_v12_2000-01-01-00:00:00"}
		found := readers{chosen: map[string]string{}, from: map[string]int64{}, again: choices{}}
		found.add(r, of, now)
		if waits := found.reads("bucket/etcd_v12_2000-01-01-00:00:00") != ""; waits != c.waits {
			t.Errorf("%s: %t", name, waits)
		}
	}
}

// The role of earlier releases does not allow to look for restores.
func TestTheRetentionNeedsNoRightToSeeRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, twoOfTen)
		var asked []string
		w.etcd.PrependReactor("list", "etcdrestores", func(a clienttesting.Action) (bool, runtime.Object, error) {
			asked = append(asked, a.GetNamespace())
			return true, nil, apierrors.NewForbidden(api.Resource("etcdrestores"), "", nil)
		})
		stop := w.run()
		defer stop()
		w.write(45 * time.Minute)
		if got := w.backups(); len(got) != 2 || !slices.Contains(asked, metav1.NamespaceAll) {
			t.Errorf("the backups are %v; asked in %q", got, asked)
		}
	})
}
