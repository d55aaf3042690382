// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// backupsOf returns the revisions of the backups of a cluster in the store, in order.
func (w *logWorld) backupsOf(cluster string) (revisions []int64) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for key, o := range w.store.objects {
		if revision, _, ours := backupobject.ParseKey("etcd", key); ours && o.Metadata[backupobject.MetaCluster] == cluster {
			revisions = append(revisions, revision)
		}
	}
	slices.Sort(revisions)
	return revisions
}

// Lists of some stores lag behind. The backup that was just made is not in them.
func TestAListThatLagsDoesNotDeleteTheLogOfANewCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 2
		})
		w.store.lag = 10 * time.Second
		var slow atomic.Bool // the first page of the list after a backup
		w.store.meddle(func(ctx context.Context, operation, key string) error {
			switch {
			case !strings.HasPrefix(key, backupobject.KeyPrefix("etcd")):
			case operation == "put":
				slow.Store(true)
			case operation == "list" && slow.Swap(false):
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(40 * time.Second):
				}
			}
			return nil
		}, nil)
		stop := w.run()
		defer stop()
		w.write(25 * time.Minute)
		w.member.Replace(0xdef, 50_000)
		w.write(10 * time.Minute)
		first := w.backupsOf("0000000000000def")
		at, _ := w.member.Position(t.Context())
		if len(first) == 0 {
			t.Fatalf("the new cluster has no backup: %+v", w.status())
		}
		if r := w.log(0xdef, first[0]); at.Revision-r.Last > 20 {
			t.Errorf("from the backup of revision %d on, the log ends with %d of %d", first[0], r.Last, at.Revision)
		}
	})
}

// laggingWorld has a backup of a former cluster, and the log of both.
func laggingWorld(t *testing.T) (w *world, put func(key, uid, cluster string), place *location.Location) {
	w = newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 600, MaxBackups: 2}))
	put = func(key, uid, cluster string) {
		w.store.objects[key] = object{Object: store.Object{Key: key, Modified: time.Now(), Metadata: map[string]string{
			backupobject.MetaUID: uid, backupobject.MetaCluster: cluster,
		}}}
	}
	return w, put, &location.Location{Store: w.store, Bucket: "bucket", Key: "etcd"}
}

func segmentKey(cluster uint64, first, last int64, until time.Time) string {
	return changelog.KeyOf("etcd", &changelog.Segment{Cluster: cluster, First: first, Last: last, Until: until})
}

// Another operator may have stored the only backup of the cluster a moment ago.
func TestTheLatestLogStaysThoughNoBackupOfItIsListed(t *testing.T) {
	for name, tc := range map[string]struct {
		former, age time.Duration // since the ends of both logs
		kept        bool
	}{
		"it is the latest":               {time.Hour, 0, true},
		"it is the latest, and old":      {8 * time.Hour, 7 * time.Hour, true},
		"a clock was ahead for a year":   {-365 * 24 * time.Hour, 0, true},
		"a clock was ahead for a moment": {-time.Minute, 0, true},
		"the former one continues":       {0, 2 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, put, place := laggingWorld(t)
				now := time.Now()
				former := backupobject.Key("etcd", 100, now.Add(-2*time.Hour))
				formerEnd := segmentKey(0xabc, 101, 110, now.Add(-tc.former))
				live := []string{segmentKey(0xdef, 11, 20, now.Add(-tc.age-time.Minute)), segmentKey(0xdef, 21, 30, now.Add(-tc.age))}
				gone := segmentKey(0xbad, 1, 5, now.Add(-9*time.Hour))
				for _, key := range append(live, formerEnd, gone) {
					put(key, string(testUID), "")
				}
				result := tidied{owned: map[string]origin{former: {mine: true, cluster: "0000000000000abc"}}}
				trimming := &tidying{cfg: &w.cfg, log: w.cfg.Logger, obj: w.stored(), again: choices{}}
				if err := trimming.trimLog(t.Context(), place, &result); err != nil {
					t.Fatal(err)
				}
				keys := w.store.keys()
				for _, key := range live {
					if slices.Contains(keys, key) != tc.kept {
						t.Errorf("%s: the log is %q", key, keys)
					}
				}
				if !slices.Contains(keys, formerEnd) || slices.Contains(keys, gone) {
					t.Errorf("the log is %q", keys)
				}
			})
		})
	}
}

// The retention goes by the backups that are there, and not by those that are listed.
func TestBackupsThatAreNotListedYetCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, put, place := laggingWorld(t)
		const cluster = "0000000000000abc"
		now := time.Now()
		at := func(minutes int) string {
			return backupobject.Key("etcd", int64(1000-minutes), now.Add(-time.Duration(minutes)*time.Minute))
		}
		mine := origin{mine: true, cluster: cluster}
		trimming := &tidying{
			cfg: &w.cfg, log: w.cfg.Logger, obj: w.stored(), again: choices{}, last: at(0),
			owned: map[string]origin{at(0): {mine: true, uncertain: true, cluster: cluster}, at(10): mine, at(20): {}, at(30): mine, at(100): mine, at(50): mine},
		}
		for _, key := range []string{at(0), at(10), at(20), at(30), at(100)} {
			put(key, string(testUID), cluster)
		}
		w.store.lag = time.Minute
		backups, owned, err := trimming.list(t.Context(), place)
		var keys []string
		for _, b := range backups {
			keys = append(keys, b.key)
			if b.uncertain != (b.key == at(0)) || b.modified != now || b.cluster != cluster || b.revision == 0 {
				t.Errorf("%+v", b)
			}
		}
		slices.Sort(keys)
		want := []string{at(0), at(10), at(30)}
		slices.Sort(want)
		if err != nil || !slices.Equal(keys, want) || len(owned) != 3 {
			t.Errorf("backups %q, owned %v, error %v", keys, owned, err)
		}
		// Not even a request for it may find the one that was just made.
		delete(w.store.objects, at(0))
		if backups, owned, err := trimming.list(t.Context(), place); err != nil || len(backups) != 2 || !owned[at(0)].mine {
			t.Errorf("%d backups, owned %v, error %v", len(backups), owned, err)
		}
		down := errors.New("it is down")
		w.store.fail("stat", down)
		if _, owned, err := trimming.list(t.Context(), place); !errors.Is(err, down) || len(owned) != len(trimming.owned) {
			t.Errorf("owned %v, error %v", owned, err)
		}
	})
}
