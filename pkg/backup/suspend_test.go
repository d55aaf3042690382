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
	for name, operation := range map[string]string{"while it deletes": "delete", "while it makes a backup": "put " + backupobject.KeyPrefix("etcd")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, func(s *api.BackupSpec) {
					s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 1200, 1
				})
				w.store.meddle(func(_ context.Context, did, key string) error {
					if did == "delete" || strings.HasPrefix(did+" "+key, operation) {
						time.Sleep(3 * time.Second)
					}
					return nil
				}, nil)
				stop := w.run()
				defer stop()
				w.write(20*time.Minute - 2*time.Second)
				for start := w.store.count(operation); w.store.count(operation) == start; {
					w.write(time.Second)
				}
				w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = true })
				synctest.Wait()
				begun := w.store.count("delete")
				pass(10 * time.Second)
				if st := w.status(); st.Phase != api.BackupPhaseSuspended || !st.Succeeded {
					t.Errorf("the status is %+v", st)
				}
				pass(time.Hour)
				if n := w.store.count("delete"); n != begun {
					t.Errorf("%d deletions began after the EtcdBackup was suspended", n-begun)
				}
				w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = false })
				pass(20 * time.Minute)
				if n := w.store.count("delete"); n <= begun || len(w.backups()) != 1 {
					t.Errorf("%d deletions follow; the backups are %v", n-begun, w.backups())
				}
			})
		})
	}
}
