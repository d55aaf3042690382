// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// loseForGood is a cluster with automatic recovery, of which a member with all known data is left.
func loseForGood(t *testing.T) *lost {
	t.Helper()
	l := loseQuorum(t, nil)
	l.members["a"].says[0].Revision, l.members["a"].says[0].RaftApplied = 83, 5000
	l.recoverItself()
	return l
}

// recoverItself has a new operator recover the cluster without a person. The loss follows the record at once.
func (l *lost) recoverItself() {
	l.t.Helper()
	l.edit(func(obj *api.EtcdCluster) {
		obj.Spec.Recovery = &api.RecoveryPolicy{Mode: api.RecoveryAutomatic}
		obj.Status.Record.LastUpdateTime = noon.Format(time.RFC3339)
	})
	l.c = l.cluster(l.etcdCluster())
}

// edit edits the EtcdCluster as another client does.
func (l *lost) edit(change func(*api.EtcdCluster)) {
	l.t.Helper()
	obj := l.etcdCluster()
	change(obj)
	obj.Generation++
	if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdclusters"), obj, "ns"); err != nil {
		l.t.Fatal(err)
	}
	l.c.take(obj)
}

// passesUntil makes a pass every ten seconds.
func (l *lost) passesUntil(at time.Time) *api.RecoveryStatus {
	l.t.Helper()
	var st *api.RecoveryStatus
	for st = l.pass(); l.clock.Now().Before(at); st = l.pass() {
		l.clock.Step(10 * time.Second)
	}
	return st
}

func (l *lost) untouched(st *api.RecoveryStatus, why string) {
	l.t.Helper()
	if n := l.count("create", "etcdbackups") + l.count("create", "etcdrestores"); n > 0 || st.Choice != nil || st.Automatic == nil || !strings.Contains(st.Automatic.Message, why) {
		l.t.Fatalf("%d objects were created, the choice is %+v, and the plan %+v", n, st.Choice, st.Automatic)
	}
}

func TestTheOperatorRecoversByItselfAfterItsPatience(t *testing.T) {
	l := loseForGood(t)
	lostAt := l.clock.Now()
	due := lostAt.Add(10 * time.Minute)
	st := l.passesUntil(lostAt.Add(5 * time.Minute))
	l.untouched(st, "recovers from the survivor a at "+due.Format(time.RFC3339))
	if st.LostDate != lostAt.Format(time.RFC3339) || st.LastQuorumDate != noon.Format(time.RFC3339) {
		t.Errorf("the loss is from %s to %s", st.LastQuorumDate, st.LostDate)
	}
	// Another operator takes over, and keeps to the time.
	l.c = l.cluster(l.etcdCluster())
	st = l.passesUntil(due.Add(-time.Second))
	if st.Choice == nil {
		l.untouched(l.pass(), "recovers from the survivor a at "+due.Format(time.RFC3339))
	}
	st = l.passesUntil(due)
	c := st.Choice
	if c == nil || !c.Automatic || c.Phase != api.RecoveryBackingUp || c.Value != "survivor=a,store=nightly" || c.Revision != 83 {
		t.Fatalf("the choice is %+v, and the plan %+v", c, st.Automatic)
	}
	if begun, err := time.Parse(time.RFC3339, c.StartDate); err != nil || begun.Before(due) {
		t.Errorf("it began at %s, before %s", c.StartDate, due)
	}
	if !l.Told("Recovery Announced") || !l.Told("Automatic Recovery") || !l.Told("Recovery Started") {
		t.Errorf("the events are %q", l.Events())
	}
	// It is killed again, and continues.
	l.c = l.cluster(l.etcdCluster())
	l.passesUntil(l.clock.Now().Add(30 * time.Second))
	if n := l.count("create", "etcdbackups"); n != 1 {
		t.Errorf("%d EtcdBackups were created", n)
	}
	once := l.backup(c.Backup)
	once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: 83, Key: once.Spec.S3.Path}
	if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
		t.Fatal(err)
	}
	l.clock.Step(10 * time.Second)
	if c := l.pass().Choice; c == nil || !c.Automatic || c.Phase != api.RecoveryRestoring {
		t.Fatalf("the choice is %+v", c)
	}
	restore, err := l.clusters.EtcdV1beta2().EtcdRestores("ns").Get(t.Context(), "c", metav1.GetOptions{})
	if err != nil || restore.Annotations[api.RecoveryAnnotation] != c.StartDate || restore.Spec.OldVolumes != api.OldVolumesKeep {
		t.Fatalf("the EtcdRestore is %+v: %v", restore, err)
	}
	l.edit(func(obj *api.EtcdCluster) { obj.Spec.Recovery.Mode = api.RecoveryManual })
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryFailed {
		t.Errorf("in the mode Manual, the choice is %+v", c)
	}
}

func TestNoAutomaticRecoveryBeginsThatIsNotRecorded(t *testing.T) {
	l := loseForGood(t)
	l.passesUntil(noon.Add(10*time.Minute - 10*time.Second))
	l.clock.Step(30 * time.Second)
	l.watch()
	l.checkRecordedFirst()
}

// Before it acts, the operator asks the API server for what the caches may not show.
func TestAutomaticRecoveryDoesNotBelieveTheCaches(t *testing.T) {
	kept := metav1.ObjectMeta{Name: "b", Namespace: "ns", Finalizers: []string{"example.com/kept"}, DeletionTimestamp: &metav1.Time{Time: noon}}
	for name, test := range map[string]struct {
		hide func(*lost)
		why  string
	}{
		"a pod without labels that is being deleted": {func(l *lost) {
			if err := l.kube.Tracker().Add(&corev1.Pod{ObjectMeta: kept}); err != nil {
				l.t.Fatal(err)
			}
		}, "the cache does not show the pod b"},
		"a volume without labels": {func(l *lost) {
			if err := l.kube.Tracker().Add(&corev1.PersistentVolumeClaim{ObjectMeta: kept}); err != nil {
				l.t.Fatal(err)
			}
		}, "the cache does not show the PersistentVolumeClaim b"},
		"a person's choice": {func(l *lost) {
			obj := l.etcdCluster()
			obj.Annotations = map[string]string{api.RecoverAnnotation: "backup=nightly"}
			if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdclusters"), obj, "ns"); err != nil {
				l.t.Fatal(err)
			}
		}, "somebody has just edited the EtcdCluster"},
		"an API server that refuses to answer": {func(l *lost) {
			l.kube.PrependReactor("list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "", nil)
			})
		}, "list the PersistentVolumeClaims"},
	} {
		t.Run(name, func(t *testing.T) {
			l := loseForGood(t)
			l.untouched(l.passesUntil(noon.Add(9*time.Minute)), "recovers from the survivor a")
			l.clock.Step(90 * time.Second)
			before := l.c.obj
			test.hide(l)
			l.watch()
			l.c.obj = before // the informer is late
			if _, err := l.c.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.untouched(l.etcdCluster().Status.Recovery, test.why)
		})
	}
}

// While no operator looked, the quorum may have been back.
func TestAnAutomaticRecoveryCountsOnlyALossThatWasSeenAllTheTime(t *testing.T) {
	for name, next := range map[string]func(*lost){
		"another operator begins":  func(l *lost) { l.c = l.cluster(l.etcdCluster()) },
		"the operator was stopped": func(*lost) {},
	} {
		t.Run(name, func(t *testing.T) {
			l := loseForGood(t)
			l.passesUntil(noon.Add(5 * time.Minute))
			l.clock.Step(3 * time.Minute)
			again := l.clock.Now()
			next(l)
			st := l.passesUntil(noon.Add(25 * time.Minute))
			l.untouched(st, "nobody knows the writes of these")
			if at, err := time.Parse(time.RFC3339, st.LostDate); err != nil || at.Before(again) {
				t.Errorf("the loss counts from %s, want %s", st.LostDate, again)
			}
		})
	}
}

// The next operator's clock is half an hour behind. The quorum may have been back in between.
func TestAnAutomaticRecoveryDoesNotTrustTimesOfAnotherClock(t *testing.T) {
	l := loseForGood(t)
	l.passesUntil(noon.Add(5 * time.Minute))
	l.edit(func(obj *api.EtcdCluster) {
		ahead := func(text string) string {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return at.Add(30 * time.Minute).Format(time.RFC3339)
		}
		st := &obj.Status
		st.Record.LastUpdateTime = ahead(st.Record.LastUpdateTime)
		r := st.Recovery
		r.LostDate, r.LastQuorumDate, r.LastUpdateTime, r.Automatic.Time = ahead(r.LostDate), ahead(r.LastQuorumDate), ahead(r.LastUpdateTime), ahead(r.Automatic.Time)
	})
	l.clock.Step(10 * time.Minute)
	l.c = l.cluster(l.etcdCluster())
	l.pass()
	l.clock.Step(10 * time.Second)
	st := l.pass()
	if st.LostDate != l.clock.Now().Format(time.RFC3339) || st.LastUpdateTime != st.LostDate {
		t.Errorf("the loss counts from %s, and the status is of %s", st.LostDate, st.LastUpdateTime)
	}
	l.untouched(l.passesUntil(noon.Add(2*time.Hour)), "the clocks of the operators differ")
}

// The time of the record bounds what nobody knows.
func TestTheRecordIsRenewedEachMinuteForAutomaticRecovery(t *testing.T) {
	old := &api.ClusterRecord{ClusterID: "7", Revision: 83, LastUpdateTime: noon.Format(time.RFC3339)}
	for _, test := range []struct {
		after     time.Duration
		automatic bool
		renewed   bool
	}{
		{time.Hour, false, false},
		{59 * time.Second, true, false},
		{time.Minute, true, true},
	} {
		now := noon.Add(test.after)
		st := &api.ClusterStatus{Record: &api.ClusterRecord{ClusterID: "7", Revision: 83, LastUpdateTime: now.Format(time.RFC3339)}}
		if keepRecord(st, old, now, test.automatic); (st.Record != old) != test.renewed {
			t.Errorf("%+v: the record is %+v", test, st.Record)
		}
	}
}
