// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"slices"
	"testing"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Without changes, a segment comes once a minute, and all backups have one revision: none of these segments is
// before the oldest backup by its revision.
func TestALogWithoutChangesDoesNotGrowForever(t *testing.T) {
	const last = 100
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	oldest := begin.Add(48 * time.Hour)
	for name, tc := range map[string]struct {
		changes bool          // whether the log holds the last revision
		records time.Duration // since begin
		kept    int           // segments without changes
	}{
		"a log":                              {true, 72 * time.Hour, 24*60 + 3},
		"a log that began with this":         {false, 72 * time.Hour, 24*60 + 3},
		"a log that stopped":                 {true, 24 * time.Hour, 1},
		"a log that began and stopped":       {false, 24 * time.Hour, 1},
		"a log that ends at the oldest time": {true, 48 * time.Hour, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 600, MaxBackups: 2}))
			put := func(first int64, until time.Time) string {
				key := changelog.KeyOf("etcd", &changelog.Segment{Cluster: testCluster, First: first, Last: last, Until: until})
				w.store.objects[key] = object{Object: store.Object{Key: key, Metadata: map[string]string{backupobject.MetaUID: string(testUID)}}}
				return key
			}
			var needed []string
			if tc.changes {
				needed = append(needed, put(last-9, begin))
			}
			for at := time.Minute; at <= tc.records; at += time.Minute {
				key := put(last+1, begin.Add(at))
				if at > 48*time.Hour || at == tc.records {
					needed = append(needed, key)
				}
			}
			place := &location.Location{Store: w.store, Bucket: "bucket", Key: "etcd"}
			result := tidied{owned: map[string]origin{}}
			for _, begun := range []time.Time{oldest, oldest.Add(time.Hour)} {
				result.owned[backupobject.Key("etcd", last, begun)] = origin{mine: true, cluster: "0000000000000abc"}
			}
			trimming := &tidying{cfg: &w.cfg, log: w.cfg.Logger, obj: w.stored(), again: choices{}}
			if err := trimming.trimLog(t.Context(), place, &result); err != nil {
				t.Fatal(err)
			}
			var kept []string
			for key := range w.store.objects {
				if _, ours := changelog.ParseKey("etcd", key); ours {
					kept = append(kept, key)
				}
			}
			for _, key := range needed {
				if !slices.Contains(kept, key) {
					t.Errorf("%s is deleted", key)
				}
			}
			if tc.changes {
				tc.kept++
			}
			if len(kept) != tc.kept {
				t.Errorf("%d segments are left, want %d", len(kept), tc.kept)
			}
		})
	}
}
