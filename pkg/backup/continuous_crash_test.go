// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// The store has the begin of a log, and the status does not: Kubernetes does not answer, and then the
// operator ends. The gap before it is reported nevertheless, and a backup closes it.
func TestAGapIsReportedAfterTheEndOfTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		w.write(time.Minute)
		stop()
		before, backups := w.continuous(), len(w.backups())
		w.member.Write(20_000, 10, 0)
		w.apiDown.Store(true)
		stop = w.run()
		w.write(10 * time.Second)
		stop()
		w.apiDown.Store(false)
		if st := w.continuous(); st.Gaps != 0 || !st.StartDate.Equal(before.StartDate) {
			t.Fatalf("the status has the gap already: %+v", st)
		}
		stop = w.run()
		defer func() { stop() }()
		w.write(2 * time.Minute)
		st := w.continuous()
		if !st.Recording || st.Gaps != 1 || !strings.Contains(st.LastGap, "revisions ") || st.StartRevision < before.NewestRevision+20_000 {
			t.Errorf("the log was %+v, and is %+v", before, st)
		}
		if r := w.log(testCluster, st.StartRevision-1); r.Last < st.NewestRevision {
			t.Errorf("from revision %d on, the log ends with %d of %d", st.StartRevision, r.Last, st.NewestRevision)
		}
		got := w.backups()
		if len(got) != backups+1 || got[len(got)-1] < st.StartRevision-1 {
			t.Errorf("%d backups before, and then %v, and the log begins with %d", backups, got, st.StartRevision)
		}
		// It is reported once.
		stop()
		stop = w.run()
		w.write(2 * time.Minute)
		if again := w.continuous(); again.Gaps != 1 || !again.StartDate.Equal(st.StartDate) {
			t.Errorf("the log was %+v, and is %+v", st, again)
		}
	})
}

// An operator stores a backup and ends before it reports that. The next one begins a log, waits for a
// slot, and then finds the backup, which is older than the log.
func TestABackupThatIsFoundIsNotTakenForThatOfALaterLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		w.store.meddle(nil, func(_ context.Context, operation, key string) error {
			if operation == "put" && strings.HasPrefix(key, backupobject.KeyPrefix("etcd")) {
				w.apiDown.Store(true)
			}
			return nil
		})
		stop := w.run()
		time.Sleep(time.Second)
		stop()
		w.apiDown.Store(false)
		w.store.meddle(nil, nil)
		if st := w.status(); st.UnfinishedSince == nil || len(w.backups()) != 1 {
			t.Fatalf("backups %v, status %+v", w.backups(), st)
		}
		w.member.Replace(0xdef, 40)
		for range slots {
			w.cfg.Slots.all <- struct{}{}
		}
		stop = w.run()
		defer func() { stop() }()
		w.write(time.Minute)
		for range slots {
			<-w.cfg.Slots.all
		}
		w.write(5 * time.Minute)
		st := w.status()
		if st.ClusterID != "0000000000000def" || st.EtcdRevision < st.Continuous.StartRevision-1 || len(w.backups()) != 2 {
			t.Errorf("the newest backup is of revision %d of the cluster %s, of %v, and the log is %+v", st.EtcdRevision, st.ClusterID, w.backups(), st.Continuous)
		}
	})
}

// A store takes its time for each of many segments. What one backup leaves to delete is gone before the
// next one, or the log would grow forever.
func TestTheRetentionKeepsUpWithABusyLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 1200, 1
		})
		w.store.meddle(func(_ context.Context, operation, key string) error {
			if operation == "delete" && strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
				time.Sleep(time.Second)
			}
			return nil
		}, nil)
		stop := w.run()
		defer stop()
		w.write(35 * time.Minute)
		backup := w.status()
		_, key, _ := strings.Cut(backup.Key, "/")
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		surplus := 0
		for segment, o := range w.store.objects {
			// The store may get one while the retention already looks. The one before is the end of the log
			// until then, and stays. The next backup makes that good.
			before := o.Modified.Before(w.store.objects[key].Modified)
			if k, ours := changelog.ParseKey("etcd", segment); ours && before && k.Last < backup.EtcdRevision {
				surplus++
			}
		}
		if surplus > 1 {
			t.Errorf("%d segments before the backup %d are left", surplus, backup.EtcdRevision)
		}
	})
}
