// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
)

// A log is proved at a random revision between its backups and its end, again and again.
func TestALogIsProvedAtARandomRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.RestoreTest = &api.RestoreTest{IntervalInSecond: 600}
		})
		r := withRestorer(w.world)
		defer w.run()()
		w.write(time.Hour + time.Minute)
		if n := len(r.asks); n < 5 || n > 8 {
			t.Fatalf("%d tests in an hour", n)
		}
		var revisions []int64
		for _, ask := range r.asks[1:] {
			if ask.Spec.Pick != api.RestorePickNewest || ask.Spec.S3.Path != "bucket/etcd" || ask.Spec.ClusterID != fmt.Sprintf("%016x", testCluster) {
				t.Errorf("the EtcdRestore is %+v", ask.Spec)
			}
			revisions = append(revisions, ask.Spec.Revision)
		}
		base, end := w.backups()[0], w.continuous().NewestRevision
		if low, high := slices.Min(revisions), slices.Max(revisions); low < base || high > end || high-low < 1000 {
			t.Errorf("tested were %v, between %d and %d", revisions, base, end)
		}
		st := w.status().RestoreTest
		last := revisions[len(revisions)-1]
		if st.Result != api.RestoreTestPassed || st.Revision != last || st.EtcdRevision != last || st.Seed == 0 {
			t.Errorf("status %+v, and %d was tested", st, last)
		}
		if want := fmt.Sprintf("at revision %d, which seed %d chose from %d to ", last, st.Seed, base); !slices.ContainsFunc(w.Events(), func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("no event says %q: %q", want, w.Events())
		}
		if value, there := w.metric("restore_test_revision"); !there || value != float64(last) {
			t.Errorf("the metric is %v, %t", value, there)
		}
		if left := r.left(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

func TestWhatATestOfALogFinds(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*restorer)
		reason string
	}{
		"an earlier revision": {func(r *restorer) { r.beyond = -1 }, "which the test restored: etcdserver: mvcc: required revision is a future revision"},
		"a later revision":    {func(r *restorer) { r.beyond = 1 }, "which the test restored: etcdserver: mvcc: required revision has been compacted"},
		"the whole backup":    {func(r *restorer) { r.beyond, r.whole = 20, true }, "and the test restored revision"},
		"another hash than etcd reported": {func(r *restorer) {
			r.ends = api.RestoreStatus{Phase: api.RestorePhaseStarting, Reason: "container restore-backup ended with exit code 1: " + rewind.ErrHash.Error()}
		}, rewind.ErrHash.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, func(s *api.BackupSpec) {
					s.RestoreTest = &api.RestoreTest{IntervalInSecond: 600}
				})
				r := withRestorer(w.world)
				tt.change(r)
				defer w.run()()
				w.write(15 * time.Minute)
				if st := w.status().RestoreTest; st.Result != api.RestoreTestFailed || !strings.Contains(st.Reason, tt.reason) || st.Revision == 0 {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

// Leases start again with the restore. Short ones end before the test looks, and etcd deletes their keys.
func TestLeasesThatEndAfterARestoreAreNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.RestoreTest = &api.RestoreTest{IntervalInSecond: 600, Check: &api.RestoreCheck{Key: "leader", Value: ptr.To("a")}}
		})
		r := withRestorer(w.world)
		r.ended, r.values["leader"] = 3, "a"
		defer w.run()()
		w.write(25 * time.Minute)
		if st := w.status().RestoreTest; st.Result != api.RestoreTestPassed || st.Revision == 0 || st.EtcdRevision != st.Revision || st.Keys != 7 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestTheRevisionOfATestFollowsFromItsSeed(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	at := func(hours int) *metav1.Time { return &metav1.Time{Time: now.Add(time.Duration(hours) * time.Hour)} }
	const cluster = "0000000000000abc"
	owned := map[string]origin{}
	own := func(revision int64, from origin) {
		owned[fmt.Sprintf("a_v1/etcd_v%d_2026-07-01-00:00:00", revision)] = from
	}
	obj := testBackup(hourly)
	obj.Spec.Continuous = &api.ContinuousBackup{}
	st := &api.BackupStatus{Succeeded: true, EtcdRevision: 900, LastExecutionDate: at(-1), LastSuccessDate: at(-1)}
	if p := pointOf(obj, st, owned, now); p != (point{}) {
		t.Errorf("without a log: %+v", p)
	}
	st.Continuous = &api.ContinuousStatus{ClusterID: cluster, StartDate: at(-5), StartRevision: 500, NewestRevision: 950}
	p := pointOf(obj, st, owned, now)
	if p.low != 900 || p.high != 950 || p.revision < 900 || p.revision > 950 || p.seed != now.UnixMilli() || choose(p) != p.revision {
		t.Errorf("from the newest backup: %+v", p)
	}
	mine := origin{mine: true, cluster: cluster}
	own(400, mine) // before the log
	own(499, mine)
	own(600, mine)
	own(700, origin{mine: true, cluster: cluster, uncertain: true})
	own(550, origin{mine: true, cluster: "other"})
	own(560, origin{cluster: cluster})
	own(570, origin{mine: true, cluster: cluster, base: true}) // it goes with that of 499
	own(900, mine)
	if p := pointOf(obj, st, owned, now); p.low != 600 {
		t.Errorf("retention may delete the oldest backup: %+v", p)
	}
	seen := map[int64]bool{}
	for minute := range 2000 {
		p := pointOf(obj, st, owned, now.Add(time.Duration(minute)*time.Minute))
		seen[p.revision] = true
		if p.revision < 600 || p.revision > 950 {
			t.Errorf("%+v", p)
		}
	}
	if len(seen) < 300 {
		t.Errorf("only %d of 351 revisions were chosen", len(seen))
	}
	st.LastExecutionDate = at(-6) // and its backup is from before the log
	if p := pointOf(obj, st, owned, now); p != (point{}) {
		t.Errorf("without a backup since the log began: %+v", p)
	}
}
