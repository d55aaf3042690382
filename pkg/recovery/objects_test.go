// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Another cluster may store its backups below the same path, and have the same revision.
func TestARecoveryByTheLogNamesItsCluster(t *testing.T) {
	cluster := &api.EtcdCluster{Status: api.ClusterStatus{Record: &api.ClusterRecord{ClusterID: "7"}}}
	cluster.Name = "orders"
	from := &api.EtcdBackup{
		Spec: api.BackupSpec{
			StorageType: api.BackupStorageTypeGCS, BackupSource: api.BackupSource{GCS: &api.GCSBackupSource{Path: "bucket/orders"}},
			BackupPolicy: &api.BackupPolicy{BackupIntervalInSecond: 60},
		},
		Status: api.BackupStatus{Key: "bucket/orders_v70_2026-06-01-00:00:00"},
	}
	for revision, want := range map[int64]string{82: "7", 0: ""} { // without the log, the key names the backup
		restore, err := Restore(cluster, from, revision, 0, "now")
		if err != nil || restore.Spec.ClusterID != want || len(api.ValidateEtcdRestore(restore)) > 0 {
			t.Errorf("revision %d: %+v, %v, %v", revision, restore, err, api.ValidateEtcdRestore(restore))
		}
	}
}

func TestALogCountsOnlyAfterABackupThatItContinues(t *testing.T) {
	const own, other = "0000000000000007", "0000000000000009"
	for what, tc := range map[string]struct {
		backup string
		start  int64
		want   bool
	}{
		"it continues":                 {own, 71, true},
		"the backup is of before":      {own, 72, false},
		"the cluster began from it":    {other, 71, false},
		"nobody knows whose it is":     {"", 71, false},
		"the log began long before it": {own, 1, true},
	} {
		b := api.EtcdBackup{Status: api.BackupStatus{Key: "k", EtcdRevision: 70, ClusterID: tc.backup, Continuous: &api.ContinuousStatus{ClusterID: own, StartRevision: tc.start, NewestRevision: 82}}}
		got := Of(Facts{Record: &api.ClusterRecord{ClusterID: "7", Revision: 83}, RestoredFrom: "k", Backups: []api.EtcdBackup{b}}).Backups[0]
		if got.Log != tc.want || got.Revision == 82 != tc.want {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
