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
)

// Somebody restores in another Kubernetes, and suspends the EtcdBackup before.
func TestASuspendedEtcdBackupDeletesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		operation string
		answer    bool // the store has done it, and its answer is slow
	}{
		"while it deletes":                       {operation: "delete"},
		"while the store answers that it did":    {operation: "delete", answer: true},
		"before it deletes":                      {operation: "list " + backupobject.KeyPrefix("etcd"), answer: true},
		"while it makes a backup":                {operation: "put " + backupobject.KeyPrefix("etcd")},
		"while the store answers that it stored": {operation: "put " + backupobject.KeyPrefix("etcd"), answer: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, func(s *api.BackupSpec) {
					s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 1200, 1
				})
				slow := func(ctx context.Context, did, key string) error {
					if did != "delete" && !strings.HasPrefix(did+" "+key, c.operation) {
						return nil
					}
					select {
					case <-time.After(3 * time.Second):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				if c.answer {
					w.store.meddle(nil, slow)
				} else {
					w.store.meddle(slow, nil)
				}
				stop := w.run()
				defer stop()
				w.write(20*time.Minute - 2*time.Second)
				for start := w.store.count(c.operation); w.store.count(c.operation) == start; {
					w.write(time.Second)
				}
				w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = true })
				synctest.Wait()
				begun := w.store.count("delete")
				pass(10 * time.Second)
				if st := w.status(); st.Phase != api.BackupPhaseSuspended || !st.Succeeded || int(st.Backups) != len(w.backups()) {
					t.Errorf("the status is %+v; the backups are %v", st, w.backups())
				}
				pass(time.Hour)
				if n := w.store.count("delete"); n != begun {
					t.Errorf("%d deletions began after the EtcdBackup was suspended", n-begun)
				}
				w.store.meddle(nil, nil)
				w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = false })
				pass(20 * time.Minute)
				if n := w.store.count("delete"); n <= begun || len(w.backups()) != 1 {
					t.Errorf("%d deletions follow; the backups are %v", n-begun, w.backups())
				}
			})
		})
	}
}
