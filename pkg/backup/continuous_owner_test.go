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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// secondUID is of an EtcdBackup of the same name in another Kubernetes, or of one that was recreated.
const secondUID types.UID = "22222222-2222-2222-2222-222222222222"

// twoLogs are two EtcdBackups in two Kubernetes clusters, for the same etcd and the same path.
func twoLogs(t *testing.T, change func(*api.BackupSpec)) (first, second *logWorld) {
	t.Helper()
	first, second = newLogWorld(t, change), newLogWorld(t, change)
	second.edit(func(obj *api.EtcdBackup) { obj.UID = secondUID })
	second.member, second.store = first.member, first.store
	return first, second
}

// own is how far the segments of one EtcdBackup alone take a backup of a revision.
func (w *logWorld) own(from int64) int64 {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	var keys []changelog.Key
	for key, o := range w.store.objects {
		if k, ours := changelog.ParseKey("etcd", key); ours && o.Metadata[backupobject.MetaUID] == string(w.stored().UID) {
			keys = append(keys, k)
		}
	}
	for _, k := range changelog.Chain(keys, from) {
		from = max(from, k.Last)
	}
	return from
}

func refused(st api.ContinuousStatus) bool {
	return !st.Recording && strings.Contains(st.Reason, "ns/b") && strings.Contains(st.Reason, string(testUID))
}

func TestTheSecondWriterOfALogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := twoLogs(t, nil)
		stopFirst, stopSecond := first.run(), func() {}
		defer func() { stopFirst(); stopSecond() }()
		first.write(2 * time.Minute)
		stopSecond = second.run()
		first.write(5 * time.Minute)
		if st := second.continuous(); !refused(st) {
			t.Errorf("the second one: %+v", st)
		}
		if got := second.Events(); !slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "Log Behind") && strings.Contains(e, "ns/b") }) {
			t.Errorf("events %q", got)
		}
		if st := first.continuous(); !st.Recording || st.Gaps != 0 {
			t.Errorf("the first one: %+v", st)
		}
		// The first one is deleted.
		stopFirst()
		first.write(5 * time.Minute)
		st := second.continuous()
		at, _ := second.member.Position(t.Context())
		if !st.Recording || st.Gaps != 0 || at.Revision-st.NewestRevision > 100 {
			t.Errorf("alone: %+v, and etcd is at %d", st, at.Revision)
		}
		if got := second.backups(); got[len(got)-1] < st.StartRevision-1 {
			t.Errorf("it has made the backups %v, and its log begins with %d", got, st.StartRevision)
		}
	})
}

// The clock of the first operator was a year ahead for a moment. The store knows when it got that segment.
func TestAClockThatWasAheadDoesNotKeepTheNextWriterOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := twoLogs(t, nil)
		stop := first.run()
		first.write(2 * time.Minute)
		stop()
		first.store.mu.Lock()
		for key, o := range first.store.objects {
			if k, ours := changelog.ParseKey("etcd", key); ours && k.Last > k.First {
				o.Key = changelog.KeyOf("etcd", &changelog.Segment{Cluster: k.Cluster, First: k.First, Last: k.Last, Until: k.Until.AddDate(1, 0, 0)})
				first.store.objects[o.Key] = o
				break
			}
		}
		first.store.mu.Unlock()
		stop = second.run()
		defer stop()
		first.write(10 * time.Minute)
		if st := second.continuous(); !st.Recording || st.Gaps != 0 {
			t.Errorf("the second one: %+v", st)
		}
	})
}

// Both begin in the same moment, as two objects of one file do.
func TestOfTwoWritersThatBeginTogetherOneStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := twoLogs(t, nil)
		stopFirst, stopSecond := first.run(), second.run()
		defer func() { stopFirst(); stopSecond() }()
		first.write(5 * time.Minute)
		if st := second.continuous(); !refused(st) {
			t.Errorf("the second one: %+v", st)
		}
		if st := first.continuous(); !st.Recording || st.Gaps != 0 {
			t.Errorf("the first one: %+v", st)
		}
	})
}

// The list of a long log takes minutes. Nothing that clients write waits for it.
func TestALogIsStoredBesideTheLookForAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		var lists, slow atomic.Int32
		w.store.meddle(func(ctx context.Context, operation, key string) error {
			if operation != "list" || key != changelog.KeyPrefix("etcd") {
				return nil
			}
			if lists.Add(1) == 1 {
				return nil // where the log ends
			}
			slow.Add(1)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(100 * time.Second):
				return nil
			}
		}, nil)
		w.store.objects["etcd_log/other"] = object{} // a page
		stop := w.run()
		defer stop()
		for range 20 {
			w.write(30 * time.Second)
			at, _ := w.member.Position(t.Context())
			if last := w.log(testCluster, w.continuous().StartRevision-1).Last; at.Revision-last > 20 {
				t.Fatalf("the log ends with revision %d, and etcd is at %d", last, at.Revision)
			}
		}
		if slow.Load() < 3 {
			t.Errorf("%d pages of the list were slow", slow.Load())
		}
	})
}

// lengthen gives the log so many segments of another cluster that their list takes long. They come first.
func (w *logWorld) lengthen() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for i := range int64(longLog + 100) {
		k := changelog.KeyOf("etcd", &changelog.Segment{Cluster: 1, First: i + 1, Last: i + 1, Until: time.UnixMilli(1)})
		w.store.objects[k] = object{Object: store.Object{Key: k}}
	}
}

// slowList makes the list of all segments slow after as many as lengthen has made.
func (w *logWorld) slowList() {
	var pages atomic.Int32
	w.store.meddle(func(ctx context.Context, operation, key string) error {
		if operation != "list" || key != changelog.KeyPrefix("etcd") || pages.Add(1) <= (longLog+20)/10 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Second):
			return nil
		}
	}, nil)
}

// The list of a long log takes minutes. What clients write meanwhile may be compacted before it is recorded.
func TestALongLogContinuesBeforeItsListEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		known int64 // what the status says of its end is wrong by so many revisions
		slow  bool
	}{
		"the status is right":     {},
		"the status lags behind":  {known: -30},
		"the status is ahead":     {known: 1000, slow: true},
		"the status is far ahead": {known: 1 << 40, slow: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLogWorld(t, nil)
				stop := w.run()
				w.write(2 * time.Minute)
				stop()
				w.lengthen()
				if tc.known != 0 {
					w.edit(func(obj *api.EtcdBackup) { obj.Status.Continuous.NewestRevision += tc.known })
				}
				w.slowList()
				stop = w.run()
				defer stop()
				w.write(30 * time.Second)
				st := w.continuous()
				at, _ := w.member.Position(t.Context())
				if last := w.log(testCluster, st.StartRevision-1).Last; (at.Revision-last > 20) != tc.slow {
					t.Errorf("the log ends with revision %d, and etcd is at %d", last, at.Revision)
				}
				w.write(10 * time.Minute)
				st = w.continuous()
				at, _ = w.member.Position(t.Context())
				if last := w.log(testCluster, st.StartRevision-1).Last; at.Revision-last > 20 || st.Gaps != 0 || !st.Recording {
					t.Errorf("the log ends with revision %d, and etcd is at %d: %+v", last, at.Revision, st)
				}
			})
		})
	}
}

// What is near the known end of a long log may be that of another EtcdBackup.
func TestTheSecondWriterOfALongLogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := twoLogs(t, nil)
		stopFirst := first.run()
		defer func() { stopFirst() }()
		first.write(2 * time.Minute)
		first.lengthen()
		second.edit(func(obj *api.EtcdBackup) { obj.Status.Continuous = first.status().Continuous })
		defer second.run()()
		first.write(2 * time.Minute)
		if st := second.continuous(); !refused(st) || second.own(0) > 0 {
			t.Errorf("the second one: %+v, and it has stored up to %d", st, second.own(0))
		}
	})
}

// Its operator is down, as during an upgrade.
func TestALogOfAnEtcdBackupThatIsThereIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := twoLogs(t, nil)
		other := first.stored()
		other.Name = "first"
		stop := first.run()
		first.write(2 * time.Minute)
		stop()
		for key, o := range first.store.objects { // as if it had that name
			o.Metadata[backupobject.MetaName] = "ns/first"
			first.store.objects[key] = o
		}
		if err := second.etcd.Tracker().Add(other); err != nil {
			t.Fatal(err)
		}
		first.write(20 * time.Minute)
		stop = second.run()
		defer func() { stop() }()
		first.write(5 * time.Minute)
		if st := second.continuous(); st.Recording || !strings.Contains(st.Reason, "ns/first") {
			t.Errorf("beside it: %+v", st)
		}
		// It records at another path from now on, and the API server does not say so.
		var failing atomic.Bool
		failing.Store(true)
		second.etcd.PrependReactor("get", "etcdbackups", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.GetAction).GetName() == "first" && failing.Load() {
				return true, nil, apierrors.NewInternalError(errors.New("etcd is busy"))
			}
			return false, nil, nil
		})
		other.Spec.S3.Path = "bucket/other"
		if err := second.etcd.Tracker().Update(backupsResource, other, "ns"); err != nil {
			t.Fatal(err)
		}
		first.write(10 * time.Minute)
		if st := second.continuous(); st.Recording || !strings.Contains(st.Reason, "etcd is busy") {
			t.Errorf("without an answer: %+v", st)
		}
		failing.Store(false)
		first.write(10 * time.Minute)
		if st := second.continuous(); !st.Recording {
			t.Errorf("alone: %+v", st)
		}
	})
}

// Each deletes only its own segments. So what a status promises must not rest on those of the other.
func TestALogPromisesOnlyWhatItsOwnerKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := twoLogs(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 3
		})
		stop := first.run()
		first.write(25 * time.Minute)
		stop()
		stop = second.run() // the first one is down
		first.write(25 * time.Minute)
		stop()
		stop = first.run()
		defer func() { stop() }()
		first.write(10 * time.Minute)
		st := first.continuous()
		if got := first.own(st.StartRevision - 1); !st.Recording || got < st.NewestRevision {
			t.Errorf("the log is %+v, and its own segments end with %d", st, got)
		}
		newest := int64(0)
		for key, o := range first.store.objects {
			if revision, _, ours := backupobject.ParseKey("etcd", key); ours && o.Metadata[backupobject.MetaUID] == string(testUID) {
				newest = max(newest, revision)
			}
		}
		if newest < st.StartRevision-1 {
			t.Errorf("its newest backup has revision %d, and its log begins with %d", newest, st.StartRevision)
		}
	})
}

// An operator may end while it stores a segment. Stores keep what it has sent, and take money for it.
func TestWhatCutOffSegmentsLeaveIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		defer w.run()()
		w.write(5 * time.Minute)
		for _, prefix := range []string{"etcd_v", changelog.KeyPrefix("etcd")} {
			if w.store.count("sweep "+prefix) == 0 {
				t.Errorf("no remains below %s were looked for: %q", prefix, w.store.asked)
			}
		}
	})
}
