// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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
		if w.told("Backup Succeeded: Stored revision 2 of etcd 3.6.16 from http://c-0:2379 as bucket/etcd") != 1 {
			t.Errorf("events %q", w.events)
		}
	})
}
