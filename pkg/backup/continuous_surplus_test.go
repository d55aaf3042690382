// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"iter"
	"runtime"
	"testing"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// surplusLog is a log of many segments, of which it keeps only what is deleted.
type surplusLog struct {
	store.Store
	uid      string
	segments int
	deleted  map[int64]bool
	// heap is what was in use before the first deletion.
	heap uint64
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (l *surplusLog) List(context.Context, string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for i := range int64(l.segments) {
			s := &changelog.Segment{Cluster: testCluster, First: i + 1, Last: i + 1, Until: time.UnixMilli(i)}
			if !l.deleted[i+1] && !yield(store.Object{Key: changelog.KeyOf("some-bucket/of-a-team/etcd", s)}, nil) {
				return
			}
		}
	}
}

func (l *surplusLog) Stat(_ context.Context, key string) (store.Object, error) {
	if l.heap == 0 {
		l.heap = heapInUse()
	}
	k, _ := changelog.ParseKey("some-bucket/of-a-team/etcd", key)
	uid := l.uid
	if k.First <= 10 {
		uid = "another"
	}
	return store.Object{Key: key, Metadata: map[string]string{backupobject.MetaUID: uid}}, nil
}

func (l *surplusLog) Delete(_ context.Context, key string) error {
	k, _ := changelog.ParseKey("some-bucket/of-a-team/etcd", key)
	l.deleted[k.First] = true
	return nil
}

// After a month without a backup, a million segments of 2.5 seconds become surplus at once.
func TestALongLogIsTrimmedInLittleMemory(t *testing.T) {
	const all, needed = 100_000, 95_000
	w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 600, MaxBackups: 1}))
	log := &surplusLog{uid: string(testUID), segments: all, deleted: map[int64]bool{}}
	place := &location.Location{Store: log, Bucket: "bucket", Key: "some-bucket/of-a-team/etcd"}
	result := tidied{owned: map[string]origin{backupobject.Key(place.Key, needed, time.Now()): {mine: true, cluster: "0000000000000abc"}}}
	trimming := &tidying{cfg: &w.cfg, log: w.cfg.Logger, obj: w.stored(), again: choices{}}
	before := heapInUse()
	if err := trimming.trimLog(t.Context(), place, &result); err != nil {
		t.Fatal(err)
	}
	if result.trimmed != needed-1-10 || len(log.deleted) != result.trimmed || log.deleted[needed] || log.deleted[10] {
		t.Errorf("trimmed %d segments, and deleted %d", result.trimmed, len(log.deleted))
	}
	const most = 12 << 20
	if used := int64(log.heap) - int64(before); used > most {
		t.Errorf("what is to be deleted takes %d bytes, want at most %d", used, most)
	}
}
