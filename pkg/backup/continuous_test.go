// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/recorder/recordertest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// logWorld is a world whose etcd has a history.
type logWorld struct {
	*world
	member *recordertest.Member
	// hashes are the revisions whose hash the operator has asked for.
	hashes []int64
	// differing is what the comparison of members shows.
	differing string
}

const testCluster = 0xabc

// newLogWorld has an EtcdBackup with a log, once a day, and an etcd with 100 revisions.
func newLogWorld(t *testing.T, change func(*api.BackupSpec)) *logWorld {
	t.Helper()
	obj := testBackup(&api.BackupPolicy{BackupIntervalInSecond: 86400})
	obj.Spec.Continuous = &api.ContinuousBackup{}
	if change != nil {
		change(&obj.Spec)
	}
	w := &logWorld{world: newWorld(t, obj), member: recordertest.New(testCluster)}
	w.member.Write(100, 10, 0)
	w.cfg.OpenMember = func(ctx context.Context, _ snapshot.Source) (recorder.Member, etcd.Position, func(), error) {
		at, err := w.member.Position(ctx)
		return w.member, at, func() {}, err
	}
	w.cfg.HashAt = func(_ context.Context, _ snapshot.Source, _, _ uint64, revision int64) (comparison, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hashes = append(w.hashes, revision)
		if w.differing != "" {
			return comparison{differing: w.differing}, errors.New(w.differing)
		}
		return comparison{agreed: changelog.Checkpoint{Revision: revision, Hash: uint32(revision)}}, nil // small
	}
	snap := w.cfg.OpenSnapshot
	w.cfg.OpenSnapshot = func(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
		at, err := w.member.Position(ctx)
		if err != nil {
			return nil, err
		}
		w.revision.Store(at.Revision - 1)
		s, err := snap(ctx, source)
		if err == nil {
			s.ClusterID = at.ClusterID
		}
		return s, err
	}
	return w
}

// write makes some revisions a second.
func (w *logWorld) write(d time.Duration) { w.writeEvery(time.Second, d) }

// writeEvery makes some revisions in each interval: for tests of hours, in which each write costs.
func (w *logWorld) writeEvery(interval, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(interval) {
		w.member.Write(3, 10, 0)
	}
	synctest.Wait()
}

// log checks the segments of a cluster and returns their span: those in the store from a
// revision on.
func (w *logWorld) log(cluster uint64, from int64) changelog.Replay {
	w.t.Helper()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	var keys []changelog.Key
	for key := range w.store.objects {
		if k, ours := changelog.ParseKey("etcd", key); ours && k.Cluster == cluster {
			keys = append(keys, k)
		}
	}
	r := changelog.Replay{Last: from}
	for _, k := range changelog.Chain(keys, from) {
		s, err := changelog.Decode(w.store.objects[k.Text].content)
		if err != nil || !k.Fits(s) || s.Trail == nil {
			w.t.Fatalf("%s: %v", k.Text, err)
		}
		fresh, err := r.Add(s)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, revision := range fresh {
			if at, _ := w.member.Position(w.t.Context()); at.ClusterID == cluster && !bytes.Equal(revision.Changes[0].KeyValue, w.member.Content(revision.Main)) {
				w.t.Errorf("revision %d has another change", revision.Main)
			}
		}
	}
	return r
}

// backups returns the revisions of the backups in the store, in order.
func (w *logWorld) backups() (revisions []int64) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for key := range w.store.objects {
		if revision, _, ours := backupobject.ParseKey("etcd", key); ours {
			revisions = append(revisions, revision)
		}
	}
	slices.Sort(revisions)
	return revisions
}

// continuous returns the status of the log, and checks that a backup takes part in it.
func (w *logWorld) continuous() api.ContinuousStatus {
	w.t.Helper()
	st := w.status()
	if st.Continuous == nil {
		w.t.Fatalf("there is no status of the log: %+v", st)
	}
	return *st.Continuous
}

func TestALogBeginsWithABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		defer stop()
		w.write(2 * time.Minute)
		st := w.continuous()
		if !st.Recording || st.Reason != "" || st.ClusterID != "0000000000000abc" || st.StartRevision < 101 || st.StartRevision > 105 || st.Gaps != 0 {
			t.Errorf("the log is %+v", st)
		}
		if lag := time.Since(st.NewestDate.Time); lag > 40*time.Second {
			t.Errorf("the status is %s old", lag)
		}
		if got := w.backups(); len(got) == 0 || got[len(got)-1] < st.StartRevision-1 {
			t.Errorf("backups of %v, and the log begins with %d", got, st.StartRevision)
		}
		r := w.log(testCluster, st.StartRevision-1)
		at, _ := w.member.Position(t.Context())
		if at.Revision-r.Last > 20 || time.Since(r.Until) > 6*time.Second {
			t.Errorf("the log ends with %d of %d, at %s", r.Last, at.Revision, r.Until)
		}
		if got := w.Events(); !slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "Log Begun") }) || slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "Warning") }) {
			t.Errorf("events %q", got)
		}
		w.mu.Lock()
		writes := len(w.statuses)
		w.mu.Unlock()
		if writes > 16 {
			t.Errorf("%d writes of the status in two minutes, with two backups", writes)
		}
		if value, there := w.metric("log_recording"); !there || value != 1 {
			t.Errorf("the metric is %v, %v", value, there)
		}
	})
}

func TestALogContinuesAfterTheEndOfTheOperator(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*logWorld)
		gap       string // "": there is none
		why       string // it does not record
	}{
		"nothing happened": {meanwhile: func(*logWorld) {}},
		"some writes":      {meanwhile: func(w *logWorld) { w.member.Write(5000, 10, 0) }},
		"large writes":     {meanwhile: func(w *logWorld) { w.member.Write(5000, 5000, 0) }},
		"many writes":      {meanwhile: func(w *logWorld) { w.member.Write(20_000, 10, 0) }, gap: "the log was 20000 revisions behind"},
		"a compaction": {meanwhile: func(w *logWorld) {
			w.member.Write(500, 10, 0)
			at, _ := w.member.Position(context.Background())
			w.member.Compact(at.Revision)
		}, gap: "etcd has compacted its history"},
		"a transaction of all keys": {meanwhile: func(w *logWorld) {
			at, _ := w.member.Position(context.Background())
			w.member.Write(9, 10, 0)
			w.member.Swell(at.Revision + 4)
		}, gap: "alone take more than 64 MiB of memory"},
		"a restore":                      {meanwhile: func(w *logWorld) { w.member.Replace(0xdef, 40) }, gap: "another cluster has taken its place"},
		"the log was deleted":            {meanwhile: func(w *logWorld) { w.member.Write(5, 10, 0); w.deleteLog() }, gap: "the store has no log of this cluster any more"},
		"the end of the log was damaged": {meanwhile: func(w *logWorld) { w.member.Write(5, 10, 0); w.damageLog() }, gap: "its SHA-256 is not the one at its end"},
		"old data under the same ID": {meanwhile: func(w *logWorld) { w.member.Replace(testCluster, 50) },
			why: "etcd has not reached revision"},
		"other data under the same ID": {meanwhile: func(w *logWorld) {
			at, _ := w.member.Position(context.Background())
			w.member.Replace(testCluster, int(at.Revision)+10)
		}, why: "the cluster has another history than its log"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				stop := w.run()
				w.write(time.Minute)
				time.Sleep(time.Minute)
				before := w.continuous()
				backups := len(w.backups())
				stop()
				tc.meanwhile(w)
				stop = w.run()
				defer stop()
				time.Sleep(2 * time.Minute)
				w.member.Write(7, 10, 0)
				time.Sleep(2 * time.Minute)
				st := w.continuous()
				if tc.why != "" {
					if st.Recording || !strings.Contains(st.Reason, tc.why) || !slices.ContainsFunc(w.Events(), func(e string) bool { return strings.Contains(e, "Log Behind") }) {
						t.Errorf("%+v, events %q", st, w.Events())
					}
					return
				}
				at, _ := w.member.Position(t.Context())
				if !st.Recording || st.NewestRevision != at.Revision || w.log(at.ClusterID, st.StartRevision-1).Last != at.Revision {
					t.Errorf("the log is %+v, and etcd at %d", st, at.Revision)
				}
				gaps, more := int32(0), 0
				if tc.gap != "" {
					gaps, more = 1, 1
				}
				if st.Gaps != gaps || !strings.Contains(st.LastGap, tc.gap) || (tc.gap == "") != st.StartDate.Equal(before.StartDate) {
					t.Errorf("the gap is %q, the log %+v", st.LastGap, st)
				}
				if got := w.backups(); len(got) != backups+more {
					t.Errorf("%d backups before, and then %v", backups, got)
				}
			})
		})
	}
}

func (w *logWorld) damageLog() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for key, o := range w.store.objects {
		if strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
			o.content[len(o.content)/2] ^= 1
		}
	}
}

func (w *logWorld) deleteLog() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for key := range w.store.objects {
		if strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
			delete(w.store.objects, key)
		}
	}
}

// Neither a store nor a member that fails for a while leaves a gap, and only one that fails for
// longer is reported.
func TestALogContinuesAfterFaults(t *testing.T) {
	down := errors.New("it is down")
	for name, fail := range map[string]func(w *logWorld, on bool){
		"the store": func(w *logWorld, on bool) {
			w.store.mu.Lock()
			defer w.store.mu.Unlock()
			w.store.before = nil
			if on {
				w.store.before = func(_ context.Context, operation, key string) error {
					if operation == "put" && strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
						return down
					}
					return nil
				}
			}
		},
		"the store, which hangs": func(w *logWorld, on bool) {
			w.store.mu.Lock()
			defer w.store.mu.Unlock()
			w.store.before = nil
			if on {
				w.store.before = func(ctx context.Context, operation, key string) error {
					if operation != "put" || !strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
						return nil
					}
					<-ctx.Done()
					return down
				}
			}
		},
		"the member": func(w *logWorld, on bool) {
			w.member.Fail(nil)
			if on {
				w.member.Fail(down)
			}
		},
	} {
		for _, lasts := range []time.Duration{2 * time.Second, 10 * time.Minute} {
			t.Run(fmt.Sprintf("%s, %s", name, lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newLogWorld(t, nil)
					stop := w.run()
					defer stop()
					w.write(time.Minute)
					fail(w, true)
					w.write(lasts)
					st := w.continuous()
					long := lasts > time.Minute
					if st.Recording == long || (st.Reason != "") != long {
						t.Errorf("meanwhile: %+v", st)
					}
					fail(w, false)
					w.write(time.Minute)
					st = w.continuous()
					at, _ := w.member.Position(t.Context())
					if r := w.log(testCluster, st.StartRevision-1); !st.Recording || st.Gaps != 0 || st.Reason != "" || at.Revision-r.Last > 20 {
						t.Errorf("after it: %+v; the log ends with %d of %d", st, r.Last, at.Revision)
					}
					events := 0
					for _, e := range w.Events() {
						if strings.Contains(e, "Log Behind") {
							events++
						}
					}
					if (events > 0) != long || events > 2 {
						t.Errorf("%d events", events)
					}
				})
			})
		}
	}
}

func TestEditsOfALogAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		defer stop()
		w.write(time.Minute)
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.Continuous.MaxLagInSecond = 1 })
		w.write(time.Minute)
		backups := w.backups()
		st := w.continuous()
		if !st.Recording || st.Gaps != 0 || time.Since(w.log(testCluster, st.StartRevision-1).Until) > 2*time.Second {
			t.Errorf("with another lag: %+v", st)
		}
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = true })
		w.write(time.Minute)
		if st := w.continuous(); st.Recording || !strings.Contains(st.Reason, "suspend") {
			t.Errorf("suspended: %+v", st)
		}
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.BackupPolicy.Suspend = false })
		w.write(time.Minute)
		if st := w.continuous(); !st.Recording || st.Gaps != 0 {
			t.Errorf("resumed: %+v", st)
		}
		w.edit(func(obj *api.EtcdBackup) { obj.Spec.Continuous = nil })
		w.write(time.Minute)
		if st := w.status(); st.Continuous != nil {
			t.Errorf("without a log: %+v", st.Continuous)
		}
		if got := w.backups(); !slices.Equal(got, backups) {
			t.Errorf("the edits made backups: %v, and then %v", backups, got)
		}
		size := len(w.store.objects)
		w.write(time.Minute)
		if got := len(w.store.objects); got != size {
			t.Errorf("without a log, %d objects became %d", size, got)
		}
	})
}

// Two backups stay, and the log since the older one.
func TestTheRetentionTrimsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 2
		})
		stop := w.run()
		defer stop()
		w.write(45 * time.Minute)
		backups := w.backups()
		if len(backups) != 2 {
			t.Fatalf("backups %v", backups)
		}
		at, _ := w.member.Position(t.Context())
		if r := w.log(testCluster, backups[0]); at.Revision-r.Last > 20 {
			t.Errorf("from the backup of revision %d on, the log ends with %d of %d", backups[0], r.Last, at.Revision)
		}
		w.store.mu.Lock()
		for key := range w.store.objects {
			if k, ours := changelog.ParseKey("etcd", key); ours && k.Last < backups[0] {
				t.Errorf("%s is of no use", key)
			}
		}
		w.store.mu.Unlock()
		// The cluster is replaced. Its log stays as long as a backup of it.
		w.member.Replace(0xdef, 10)
		w.write(15 * time.Minute)
		if r := w.log(testCluster, backups[1]); r.Last <= backups[1] {
			t.Error("the log of the former cluster is deleted, though a backup of it is kept")
		}
		w.write(30 * time.Minute)
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		kept := 0
		for key := range w.store.objects {
			if k, ours := changelog.ParseKey("etcd", key); ours && k.Cluster == testCluster {
				kept++
			}
		}
		t.Logf("%d segments of the former cluster are kept", kept)
	})
}

// A hold on a backup of the former cluster keeps that one's log alone.
func TestALockedBackupDoesNotKeepTheLogOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 1
		})
		stop := w.run()
		defer stop()
		w.write(5 * time.Minute)
		held := w.backups()[0]
		w.store.meddle(func(_ context.Context, operation, key string) error {
			if revision, _, ours := backupobject.ParseKey("etcd", key); operation == "delete" && ours && revision == held {
				return store.ErrDenied
			}
			return nil
		}, nil)
		w.member.Replace(0xdef, 5000)
		w.write(45 * time.Minute)
		backups := w.backups()
		if len(backups) != 2 || backups[0] != held || w.log(testCluster, held).Last <= held {
			t.Errorf("the backups are %v, and that of revision %d is held", backups, held)
		}
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		for key := range w.store.objects {
			if k, ours := changelog.ParseKey("etcd", key); ours && k.Cluster == 0xdef && k.Last < backups[1]-20 {
				t.Errorf("%s is of no use", key)
			}
		}
	})
}

// A hold on segments keeps those alone. Behind a lock of all, it is of no use to ask for each.
func TestLockedSegmentsDoNotStopTheRetentionOfOthers(t *testing.T) {
	for name, all := range map[string]bool{"some": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, func(s *api.BackupSpec) {
					s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 1
				})
				held, refused := map[string]bool{}, 0
				w.store.meddle(func(_ context.Context, operation, key string) error {
					k, ours := changelog.ParseKey("etcd", key)
					if operation != "delete" || !ours {
						return nil
					}
					if all || len(held) < 3 && k.First > 200 || held[key] {
						held[key] = true
						refused++
						return fmt.Errorf("delete %s: %w", key, store.ErrDenied)
					}
					return nil
				}, nil)
				stop := w.run()
				defer stop()
				w.write(32 * time.Minute)
				kept := w.backups()
				if len(kept) != 1 || w.Times("Old Backups Not Deleted") == 0 {
					t.Errorf("backups %v, events %q", kept, w.Events())
				}
				if r, at := w.log(testCluster, kept[0]), w.continuous(); at.Gaps != 0 || r.Last < at.NewestRevision {
					t.Errorf("from the backup of revision %d on, the log ends with %d: %+v", kept[0], r.Last, at)
				}
				w.store.mu.Lock()
				defer w.store.mu.Unlock()
				left := 0
				for key := range w.store.objects {
					if k, ours := changelog.ParseKey("etcd", key); ours && k.Last < kept[0]-20 {
						left++
					}
				}
				if !all && (len(held) != 3 || left != 3) || all && refused > 300 {
					t.Errorf("the store has refused %d deletions of %d segments, and %d of no use are left", refused, len(held), left)
				}
			})
		})
	}
}

// The quorum is gone when a log has just begun again. The member with the most data has not reached that begin.
// The last segment shows where the log continues, and that etcd still has the same history.
func TestTheRetentionKeepsTheEndOfALogThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 1
		})
		stop := w.run()
		defer stop()
		w.write(15 * time.Minute)
		w.store.meddle(func(_ context.Context, operation, key string) error {
			if operation == "put" && strings.HasPrefix(key, changelog.KeyPrefix("etcd")) {
				return errors.New("the bucket is full")
			}
			return nil
		}, nil)
		w.write(25 * time.Minute)
		if st := w.continuous(); st.Recording {
			t.Fatalf("the log is %+v", st)
		}
		w.store.meddle(nil, nil)
		w.write(20 * time.Minute)
		st := w.continuous()
		kept := w.backups()
		r := w.log(testCluster, kept[len(kept)-1])
		at, _ := w.member.Position(t.Context())
		if !st.Recording || st.Gaps != 0 || at.Revision-r.Last > 20 || len(kept) != 1 {
			t.Errorf("the backups %v and the log up to revision %d of %d are left: %+v", kept, r.Last, at.Revision, st)
		}
	})
}

func TestALogGetsAnotherBackupThatItContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		var lost atomic.Bool
		good := w.cfg.OpenSnapshot
		w.cfg.OpenSnapshot = func(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
			if !lost.Load() {
				return good(ctx, source)
			}
			w.member.Fail(errors.New("etcdserver: no leader"))
			w.revision.Store(899)
			s, err := w.snapshot(ctx, source)
			if err == nil {
				s.ClusterID, s.Linearizable = testCluster, false
			}
			return s, err
		}
		stop := w.run()
		w.write(time.Minute)
		stop()
		w.member.Write(20_000, 10, 0)
		lost.Store(true)
		stop = w.run()
		defer stop()
		w.write(30 * time.Second)
		uncertain := func() (n int) {
			for _, revision := range w.backups() {
				if revision == 900 {
					n++
				}
			}
			return n
		}
		if st := w.status(); !st.Uncertain || st.EtcdRevision != 900 || st.Continuous.StartRevision < 20_000 || uncertain() != 1 {
			t.Fatalf("%d uncertain backups, status %+v", uncertain(), st)
		}
		pass(time.Hour)
		if n := uncertain(); n > 2 {
			t.Errorf("%d backups in an hour without a quorum", n)
		}
		lost.Store(false)
		w.member.Fail(nil)
		w.write(time.Minute)
		if st := w.status(); st.Uncertain || !st.Continuous.Recording || st.EtcdRevision < st.Continuous.StartRevision-1 {
			t.Errorf("backups of %v, status %+v", w.backups(), st)
		}
		if n := len(w.backups()); n > 5 {
			t.Errorf("backups of %v", w.backups())
		}
	})
}

// Times in the status have whole seconds.
func TestABackupIsNeededAfterTheBeginOfALog(t *testing.T) {
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 7, 1, 0, 0, second, 0, time.UTC)}
	}
	took := &metav1.Duration{Duration: 400 * time.Millisecond}
	for name, tc := range map[string]struct {
		st   api.BackupStatus
		want bool
	}{
		"no backup yet":                       {api.BackupStatus{}, true},
		"one from before":                     {api.BackupStatus{Succeeded: true, LastExecutionDate: at(9), LastSuccessDate: at(10), Duration: took}, true},
		"one in the second in which it began": {api.BackupStatus{Succeeded: true, LastExecutionDate: at(10), LastSuccessDate: at(10), Duration: took}, false},
		"one from before, and a crash":        {api.BackupStatus{Phase: api.BackupPhaseRunning, Succeeded: true, LastExecutionDate: at(20), LastSuccessDate: at(10), Duration: took}, true},
		"one from before, and a failure":      {api.BackupStatus{LastExecutionDate: at(20), LastSuccessDate: at(10), Duration: took}, true},
		"one from after, and a failure":       {api.BackupStatus{LastExecutionDate: at(20), LastSuccessDate: at(12), Duration: took}, false},
		"one of unknown duration":             {api.BackupStatus{LastExecutionDate: at(20), LastSuccessDate: at(12)}, false},
		"one that ends before it":             {api.BackupStatus{Succeeded: true, LastExecutionDate: at(20), LastSuccessDate: at(21), ClusterID: "a", EtcdRevision: 99}, true},
		"one that it continues":               {api.BackupStatus{Succeeded: true, LastExecutionDate: at(20), LastSuccessDate: at(21), ClusterID: "a", EtcdRevision: 100}, false},
		"one of unknown cluster":              {api.BackupStatus{Succeeded: true, LastExecutionDate: at(20), LastSuccessDate: at(21), EtcdRevision: 99}, false},
	} {
		obj := testBackup(&api.BackupPolicy{BackupIntervalInSecond: 86400})
		obj.Spec.Continuous = &api.ContinuousBackup{}
		tc.st.Continuous = &api.ContinuousStatus{StartDate: at(10), ClusterID: "a", StartRevision: 101}
		if got := needsBase(obj, &tc.st, at(30).Time); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if needsBase(obj, &tc.st, at(9).Time) {
			t.Errorf("%s: a backup is due before the log has begun", name)
		}
	}
}

// Each takes room in the store.
func TestABackupThatEndsBeforeTheLogIsRepeatedSeldom(t *testing.T) {
	began := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: began.Add(d)} }
	obj := testBackup(&api.BackupPolicy{BackupIntervalInSecond: 86400})
	obj.Spec.Continuous = &api.ContinuousBackup{}
	st := &api.BackupStatus{
		Succeeded: true, ClusterID: "a", EtcdRevision: 99, LastExecutionDate: at(time.Second), LastSuccessDate: at(2 * time.Second),
		Continuous: &api.ContinuousStatus{StartDate: at(0), ClusterID: "a", StartRevision: 101},
	}
	if baseDue(obj, st, began.Add(time.Hour)) {
		t.Error("a backup is due, though etcd has no quorum")
	}
	st.Continuous.Recording = true
	attempts := 0
	for now := began.Add(2 * time.Second); now.Before(began.Add(24 * time.Hour)); now = now.Add(time.Second) {
		if baseDue(obj, st, now) {
			attempts++
			st.LastExecutionDate = &metav1.Time{Time: now}
		}
	}
	if attempts < 5 || attempts > 15 {
		t.Errorf("%d attempts in a day", attempts)
	}
}
