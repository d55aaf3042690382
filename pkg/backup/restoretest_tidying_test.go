//go:build !race

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
)

// The tidying of a log takes up to four hours. A hanging list of the store takes as long.
func TestATestDoesNotWaitForLongTidying(t *testing.T) {
	for _, operation := range []string{"list", "delete"} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, func(s *api.BackupSpec) {
					s.RestoreTest = &api.RestoreTest{IntervalInSecond: 600}
					s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 2*3600, 3
				})
				r := withRestorer(w.world)
				var slow atomic.Bool
				w.store.meddle(func(ctx context.Context, did, key string) error {
					if !slow.Load() || did != operation || !strings.HasPrefix(key, backupobject.KeyPrefix("etcd")) {
						return nil
					}
					<-ctx.Done()
					return context.Cause(ctx)
				}, nil)
				defer w.run()()
				w.writeEvery(time.Minute, 6*time.Hour-time.Minute)
				before := len(r.asks)
				slow.Store(true)
				w.write(2 * time.Minute) // the next backup, and the retention deletes the oldest one
				base := w.backups()[len(w.backups())-1]
				during := len(r.asks)
				w.writeEvery(time.Minute, time.Hour)
				asks := r.asks[during:]
				if before < 30 || len(asks) < 5 {
					t.Fatalf("%d tests in six hours, and %d in the hour of the tidying", before, len(asks))
				}
				for _, ask := range asks {
					if operation == "delete" && ask.Spec.Revision < base { // a list that fails ends the tidying
						t.Errorf("revision %d is tested, before that of the newest backup, %d: the retention may delete what it needs", ask.Spec.Revision, base)
					}
				}
				if st := w.status().RestoreTest; st.Result != api.RestoreTestPassed {
					t.Errorf("the status is %+v", st)
				}
			})
		})
	}
}
