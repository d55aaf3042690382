// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// jump makes more revisions than the log reads from etcd, while the operator is down.
func (w *logWorld) jump(stop func()) (next func()) {
	stop()
	w.member.Write(20_000, 1, 0)
	return w.run()
}

// A writer that runs away is why somebody wants the backups from before it.
func TestGapsOfALogDisplaceNoBackupOfTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 3600, 4
		})
		stop := w.run()
		defer func() { stop() }()
		w.writeEvery(time.Minute, 4*time.Hour+5*time.Minute)
		before := w.backups()
		end := w.continuous().NewestRevision
		if len(before) != 4 {
			t.Fatalf("backups %v", before)
		}
		for range 8 {
			stop = w.jump(stop)
			w.writeEvery(10*time.Second, 150*time.Second)
		}
		kept := w.backups()
		for _, revision := range before {
			if !slices.Contains(kept, revision) {
				t.Errorf("the backup of revision %d is gone", revision)
			}
		}
		if r := w.log(testCluster, before[0]); r.Last < end {
			t.Errorf("from the backup of revision %d on, the log ends with %d of %d", before[0], r.Last, end)
		}
		st := w.continuous()
		if newest := kept[len(kept)-1]; st.Gaps != 8 || newest < st.StartRevision-1 || w.log(testCluster, newest).Last < st.NewestRevision {
			t.Errorf("the log does not continue the newest backup of %v: %+v", kept, st)
		}
		if len(kept) > 8 {
			t.Errorf("%d backups are kept: %v", len(kept), kept)
		}
		// The bases go with what is before them.
		w.writeEvery(time.Minute, 4*time.Hour)
		if kept := w.backups(); len(kept) != 4 {
			t.Errorf("in the end, backups %v", kept)
		}
	})
}

// People give a store room for one backup more than they keep.
func TestAGapInAFullStoreDoesNotEndTheBackups(t *testing.T) {
	for gaps := 1; gaps <= 2; gaps++ {
		synctest.Test(t, func(t *testing.T) {
			w := newLogWorld(t, func(s *api.BackupSpec) {
				s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 3600, 4
			})
			w.store.meddle(func(_ context.Context, operation, key string) error {
				if _, _, ours := backupobject.ParseKey("etcd", key); ours && operation == "put" && len(w.backups()) >= 5 {
					return store.ErrFull
				}
				return nil
			}, nil)
			stop := w.run()
			defer func() { stop() }()
			w.writeEvery(time.Minute, 4*time.Hour+5*time.Minute)
			before := w.backups()
			for range gaps {
				stop = w.jump(stop)
				w.writeEvery(10*time.Second, 150*time.Second)
			}
			if got := w.backups(); len(before) != 4 || len(got) != 5 {
				t.Fatalf("of %v, %v are left after %d gaps", before, got, gaps)
			}
			last := w.status().LastScheduleDate
			w.writeEvery(time.Minute, time.Hour)
			kept := w.backups()
			if st := w.status(); !st.Succeeded || !last.Before(st.LastScheduleDate) || len(kept) != 5 || !slices.Equal(kept[:3], before[1:]) {
				t.Errorf("after %d gaps, %v of %v are left, and the status is %+v", gaps, kept, before, st)
			}
			w.writeEvery(time.Minute, 8*time.Hour)
			if st := w.status(); !st.Succeeded || int(st.Continuous.Gaps) != gaps {
				t.Errorf("in the end, the status is %+v", st)
			}
		})
	}
}

// Another look has another time.
func TestABaseWhoseAnswerWasLostIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		defer func() { stop() }()
		w.write(2 * time.Minute)
		before := len(w.backups())
		lost := false
		w.store.meddle(nil, func(_ context.Context, operation, key string) error {
			if operation == "put" && strings.HasPrefix(key, backupobject.KeyPrefix("etcd")) && !lost {
				lost = true
				return errLost
			}
			return nil
		})
		stop = w.jump(stop)
		w.write(2 * time.Minute)
		if got := w.backups(); !lost || len(got) != before+1 {
			t.Errorf("%d backups before, and then %v", before, got)
		}
		if st := w.status(); !st.Succeeded || st.EtcdRevision < st.Continuous.StartRevision-1 {
			t.Errorf("status %+v", st)
		}
	})
}

// The log begins again while the backup for it is under way.
func TestBasesDoNotFollowEachOtherAtOnce(t *testing.T) {
	began := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: began.Add(d)} }
	for name, tc := range map[string]struct {
		change func(*api.BackupStatus)
		wait   time.Duration // since the begin of the last backup
	}{
		"it took long":        {func(*api.BackupStatus) {}, 20 * time.Minute},
		"it took seconds":     {func(st *api.BackupStatus) { st.Duration.Duration = time.Second }, time.Minute},
		"it took no time":     {func(st *api.BackupStatus) { st.Duration = nil }, time.Minute},
		"it is the first log": {func(st *api.BackupStatus) { st.Continuous.Gaps = 0 }, 0},
		"the last one failed": {func(st *api.BackupStatus) { st.Succeeded, st.Phase = false, api.BackupPhaseRetrying }, 0},
		"the operator ended":  {func(st *api.BackupStatus) { st.Phase = api.BackupPhaseRunning }, 0},
	} {
		obj := testBackup(&api.BackupPolicy{BackupIntervalInSecond: 86400})
		obj.Spec.Continuous = &api.ContinuousBackup{}
		st := &api.BackupStatus{
			Succeeded: true, Phase: api.BackupPhaseWaiting, LastExecutionDate: at(0), LastSuccessDate: at(10 * time.Minute),
			Duration:   &metav1.Duration{Duration: 10 * time.Minute},
			Continuous: &api.ContinuousStatus{StartDate: at(time.Second), ClusterID: "a", StartRevision: 101, Gaps: 1, Recording: true},
		}
		tc.change(st)
		soon := max(tc.wait, time.Second) // the log begins then
		if tc.wait > 0 && baseDue(obj, st, began.Add(tc.wait-time.Second)) || !baseDue(obj, st, began.Add(soon)) {
			t.Errorf("%s: want a backup after %s", name, soon)
		}
	}
}
