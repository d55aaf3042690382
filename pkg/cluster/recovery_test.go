// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// lost is a cluster of which only a member is left, and an EtcdBackup of it.
type lost struct {
	*world
	clock   *testingclock.FakeClock
	members fakeMembers
	c       *Cluster
}

func loseQuorum(t *testing.T, annotations map[string]string) *lost {
	t.Helper()
	return loseAllBut(t, 1, annotations, "a", "b", "d")
}

// loseAllBut loses all members except the first ones.
func loseAllBut(t *testing.T, left int, annotations map[string]string, members ...string) *lost {
	t.Helper()
	obj := testCluster()
	obj.Annotations = annotations
	obj.Status.Phase = api.ClusterPhaseRunning
	obj.Status.Record = &api.ClusterRecord{ClusterID: "7", Revision: 83}
	for i, name := range members {
		obj.Status.Record.Members = append(obj.Status.Record.Members, api.RecordedMember{ID: fmt.Sprint(i + 1), Name: name})
	}
	clock := testingclock.NewFakeClock(noon)
	w := newWorld(t, clock, obj)
	taken := metav1.NewTime(noon.Add(-time.Hour))
	for _, b := range []*api.EtcdBackup{
		{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "ns"}, Spec: api.BackupSpec{EtcdCluster: &api.EtcdClusterRef{Name: "c"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: "ns"}, Spec: api.BackupSpec{EtcdCluster: &api.EtcdClusterRef{Name: "other"}}},
	} {
		b.Spec.StorageType, b.Spec.S3 = api.BackupStorageTypeS3, &api.S3BackupSource{Path: "bucket/" + b.Name, AWSSecret: "aws"}
		b.Spec.BackupPolicy = &api.BackupPolicy{BackupIntervalInSecond: 3600}
		b.Status = api.BackupStatus{Key: "bucket/x", EtcdRevision: 70, Succeeded: true, LastSuccessDate: &taken}
		if err := w.clusters.Tracker().Add(b); err != nil {
			t.Fatal(err)
		}
	}
	m := fakeMembers{}
	m.join(t, w, members...)
	for i, name := range members {
		m[name].agreed, m[name].remembered = nil, m[name].agreed
		m[name].says = []etcd.Status{{MemberID: uint64(i + 1), ClusterID: 7, Version: "3.6.16", RaftIndex: 5000, RaftTerm: 4, Revision: 80}} // small
	}
	for _, name := range members[left:] {
		if err := w.kube.CoreV1().Pods("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l := &lost{w, clock, m, w.cluster(w.etcdCluster())}
	l.serveDataOf(members[0], corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	w.watch()
	return l
}

// serveData sets the state of the container that serves the data of the survivor.
func (l *lost) serveData(state corev1.ContainerState) {
	l.t.Helper()
	l.serveDataOf("a", state)
}

func (l *lost) serveDataOf(member string, state corev1.ContainerState) {
	l.t.Helper()
	pod := l.pod(member)
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "serve-data-1"}}}
	pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "serve-data-1", State: state}}
	l.update(pod)
}

func (l *lost) update(pod *corev1.Pod) {
	l.t.Helper()
	if err := l.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "ns"); err != nil {
		l.t.Fatal(err)
	}
}

// pass makes a pass, and hands back what it has written, as an informer does.
func (l *lost) pass() *api.RecoveryStatus {
	l.t.Helper()
	l.watch()
	if _, err := l.c.pass(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.c.take(l.etcdCluster())
	return l.etcdCluster().Status.Recovery
}

func (l *lost) backup(name string) *api.EtcdBackup {
	b, err := l.clusters.EtcdV1beta2().EtcdBackups("ns").Get(l.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

func TestTheStatusListsTheWaysOut(t *testing.T) {
	l := loseQuorum(t, nil)
	if st := l.pass(); st != nil || l.count("list", "etcdbackups") != 0 {
		t.Fatalf("after a moment, there is %+v", st)
	}
	l.clock.Step(10 * time.Second)
	st := l.pass()
	if st == nil || st.LastRevision != 83 || len(st.Ways) != 2 {
		t.Fatalf("the ways out are %+v", st)
	}
	if w := st.Ways[0]; w.Way != api.RecoverySurvivor || w.Member != "a" || w.Revision != 80 || w.RaftTerm != 4 || w.RaftIndex != 5000 ||
		w.Message != "a has revision 80; its log may hold later ones; the last revision known to be committed was 83: at most 3 known revisions are lost, and perhaps later writes" {
		t.Errorf("the first is %+v", w)
	}
	if w := st.Ways[1]; w.Way != api.RecoveryBackup || w.Backup != "nightly" || w.Revision != 70 || w.Time != "2026-01-01T11:00:00Z" {
		t.Errorf("the second is %+v", w)
	}

	// A minute of passes with a member that answers now and then.
	writes, lists := l.count("update", "etcdclusters"), l.count("list", "etcdbackups")
	for i := range 60 {
		l.clock.Step(time.Second)
		l.members["a"].says[0].Revision = int64(80 + i%2)
		l.pass()
	}
	if n := l.count("update", "etcdclusters") - writes; n > 4 {
		t.Errorf("a minute took %d writes", n)
	}
	if n := l.count("list", "etcdbackups") - lists; n > 5 {
		t.Errorf("a minute took %d lists", n)
	}

	a := l.members["a"]
	a.agreed, a.says[0].LeaderID = a.remembered, 1
	if st := l.pass(); st != nil {
		t.Errorf("with a quorum, there is %+v", st)
	}
}

func TestAPersonChoosesTheSurvivor(t *testing.T) {
	l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a", api.ScopeAnnotation: api.ScopeClusterWide})
	l.pass()
	l.clock.Step(10 * time.Second)
	const name = "nightly-manual-20260101-120010"
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryBackingUp || c.Backup != name || c.Revision != 80 {
		t.Fatalf("the choice is %+v", c)
	}
	once := l.backup(name)
	if once.Spec.BackupPolicy != nil || once.Spec.S3.Path != "bucket/nightly-manual-20260101-120010" || once.Spec.EtcdCluster.Name != "c" {
		t.Errorf("the EtcdBackup is %+v", once.Spec)
	}
	// Another operator takes over.
	l.c = l.cluster(l.etcdCluster())
	l.pass()
	l.clock.Step(10 * time.Second)
	l.pass()
	if n := l.count("create", "etcdbackups"); n != 1 {
		t.Errorf("%d EtcdBackups were created", n)
	}
	once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: 81, UnappliedEntries: ptr.To[int64](1), Key: once.Spec.S3.Path}
	if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
		t.Fatal(err)
	}
	l.clock.Step(10 * time.Second)
	c := l.pass().Choice
	if c.Phase != api.RecoveryRestoring || c.Revision != 81 || c.HighestRevision != 82 ||
		c.Message != "revision 81 is restored, and at most 1 later one from the log of the survivor; the last revision known to be committed was 83: 1 to 2 known revisions are lost, and later writes" {
		t.Fatalf("the choice is %+v", c)
	}
	restore, err := l.clusters.EtcdV1beta2().EtcdRestores("ns").Get(t.Context(), "c", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := restore.Spec
	if spec.Pick != api.RestorePickExact || spec.S3.Path != once.Spec.S3.Path || spec.OldVolumes != api.OldVolumesKeep || spec.BumpRevision != 1_000_000_002 || spec.ClusterTemplate != nil {
		t.Errorf("the EtcdRestore is %+v", spec)
	}
	if restore.Annotations[api.RecoveryAnnotation] != c.StartDate || restore.Annotations[api.ScopeAnnotation] != api.ScopeClusterWide {
		t.Errorf("its annotations are %v", restore.Annotations)
	}
	for range 3 {
		l.clock.Step(10 * time.Second)
		l.pass()
	}
	if n := l.count("create", "etcdrestores"); n != 1 {
		t.Errorf("%d EtcdRestores were created", n)
	}
	if !l.Told("Recovery Restoring") {
		t.Errorf("the events are %q", l.Events())
	}
}

// If the chosen backup is damaged, an older one would lose more than anybody has agreed to.
func TestARecoveryTakesTheChosenBackupAlone(t *testing.T) {
	for name, test := range map[string]struct {
		log      int64 // its end
		pick     api.RestorePick
		path     string
		revision int64
	}{
		"a backup":           {0, api.RestorePickExact, "bucket/nightly_v70", 0},
		"a backup and a log": {82, api.RestorePickNewest, "bucket/nightly", 82},
	} {
		t.Run(name, func(t *testing.T) {
			l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "backup=nightly"})
			b := l.backup("nightly")
			b.Status.Key = "bucket/nightly_v70"
			if test.log > 0 {
				b.Status.ClusterID, b.Status.Continuous = "7", &api.ContinuousStatus{ClusterID: "7", NewestRevision: test.log}
			}
			if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), b, "ns"); err != nil {
				t.Fatal(err)
			}
			l.pass()
			l.clock.Step(10 * time.Second)
			l.pass()
			restore, err := l.clusters.EtcdV1beta2().EtcdRestores("ns").Get(t.Context(), "c", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if spec := restore.Spec; spec.Pick != test.pick || spec.S3.Path != test.path || spec.Revision != test.revision {
				t.Errorf("the EtcdRestore takes %s of %s, revision %d", spec.Pick, spec.S3.Path, spec.Revision)
			}
		})
	}
}

// Another cluster had the name, and its EtcdBackup has made no backup since.
func TestARecoveryRefusesABackupOfAnotherCluster(t *testing.T) {
	l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "backup=nightly"})
	b := l.backup("nightly")
	b.Status.ClusterID = "0000000000000008"
	if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), b, "ns"); err != nil {
		t.Fatal(err)
	}
	l.pass()
	l.clock.Step(10 * time.Second)
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryRefused || !strings.Contains(c.Reason, "it comes from another cluster: its cluster ID is 8") {
		t.Errorf("the choice is %+v", c)
	}
	if n := l.count("create", "etcdrestores"); n != 0 {
		t.Errorf("%d EtcdRestores were created", n)
	}
}

// Leases, users and roles raise no revision.
func TestTheBackupOfASurvivorHasAllItsEntries(t *testing.T) {
	for index, fails := range map[int64]bool{0: false, 499: true, 500: false, 510: false} {
		l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
		l.members["a"].says[0].RaftApplied = 500
		l.pass()
		l.clock.Step(10 * time.Second)
		c := l.pass().Choice
		if c.RaftIndex != 500 {
			t.Errorf("the choice is %+v", c)
		}
		once := l.backup(c.Backup)
		once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: c.Revision, RaftIndex: index, Key: once.Spec.S3.Path}
		if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
			t.Fatal(err)
		}
		l.clock.Step(10 * time.Second)
		c = l.pass().Choice
		if (c.Phase == api.RecoveryFailed) != fails || fails && !strings.Contains(c.Reason, "has raft entry 499, and the survivor had applied 500") {
			t.Errorf("with entry %d: %+v", index, c)
		}
	}
}

// Whoever deletes the EtcdRestore before it has touched anything takes the choice back.
func TestTheDeletionOfTheRestoreTakesTheChoiceBack(t *testing.T) {
	l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "backup=nightly"})
	l.clusters.PrependReactor("create", "etcdrestores", func(a clienttesting.Action) (bool, runtime.Object, error) {
		a.(clienttesting.CreateAction).GetObject().(*api.EtcdRestore).UID = "made" // as the API server does
		return false, nil, nil
	})
	l.pass()
	l.clock.Step(10 * time.Second)
	l.pass()
	l.clock.Step(10 * time.Second)
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryRestoring || l.count("create", "etcdrestores") != 1 {
		t.Fatalf("the choice is %+v", c)
	}
	l.c = l.cluster(l.etcdCluster()) // another operator
	l.pass()
	if err := l.clusters.EtcdV1beta2().EtcdRestores("ns").Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.clock.Step(10 * time.Second)
		l.pass()
	}
	c := l.etcdCluster().Status.Recovery.Choice
	if c.Phase != api.RecoveryFailed || !strings.Contains(c.Reason, "somebody has deleted the EtcdRestore c") || l.count("create", "etcdrestores") != 1 {
		t.Errorf("%d EtcdRestores were created, and the choice is %+v", l.count("create", "etcdrestores"), c)
	}
	if !l.Told("Recovery Failed") {
		t.Errorf("the events are %q", l.Events())
	}
	l.edit(func(obj *api.EtcdCluster) { obj.Annotations = nil })
	l.pass()
	l.edit(func(obj *api.EtcdCluster) {
		obj.Annotations = map[string]string{api.RecoverAnnotation: "backup=nightly"}
	})
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryRestoring || l.count("create", "etcdrestores") != 2 {
		t.Errorf("once more: %+v", c)
	}
}

// While no operator looked, the quorum may have been back, taken writes, and been lost again.
func TestAChoiceFailsIfNobodyHasSeenTheLossAllTheTime(t *testing.T) {
	for gap, fails := range map[time.Duration]bool{time.Minute: false, 10 * time.Minute: true} {
		l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
		l.pass()
		l.clock.Step(10 * time.Second)
		c := l.pass().Choice
		once := l.backup(c.Backup)
		once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: 80, Key: once.Spec.S3.Path}
		if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
			t.Fatal(err)
		}
		l.clock.Step(gap)
		l.c = l.cluster(l.etcdCluster())
		l.pass()
		l.clock.Step(10 * time.Second)
		l.pass()
		c = l.etcdCluster().Status.Recovery.Choice
		if restores := l.count("create", "etcdrestores"); fails && (c.Phase != api.RecoveryFailed || restores > 0) || !fails && restores == 0 {
			t.Errorf("after %s, %d EtcdRestores were created, and the choice is %+v", gap, restores, c)
		}
		if !fails {
			continue
		}
		// Somebody sets the annotation again.
		l.edit(func(obj *api.EtcdCluster) { obj.Annotations = nil })
		l.pass()
		l.edit(func(obj *api.EtcdCluster) { obj.Annotations = map[string]string{api.RecoverAnnotation: "survivor=a"} })
		if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryBackingUp {
			t.Errorf("the next choice is %+v", c)
		}
		l.clock.Step(10 * time.Second)
		if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryBackingUp {
			t.Errorf("then the next choice is %+v", c)
		}
	}
}

// The clock of the operator that began to follow the choice was half an hour ahead.
func TestAChoiceFailsIfAnotherClockDatesIt(t *testing.T) {
	l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
	l.pass()
	l.clock.Step(10 * time.Second)
	once := l.backup(l.pass().Choice.Backup)
	once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: 80, Key: once.Spec.S3.Path}
	if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
		t.Fatal(err)
	}
	l.edit(func(obj *api.EtcdCluster) {
		r := obj.Status.Recovery
		for _, date := range []*string{&r.LostDate, &r.LastUpdateTime, &r.Choice.StartDate} {
			at, err := time.Parse(time.RFC3339, *date)
			if err != nil {
				t.Fatal(err)
			}
			*date = at.Add(30 * time.Minute).Format(time.RFC3339)
		}
	})
	l.clock.Step(10 * time.Minute)
	l.c = l.cluster(l.etcdCluster())
	l.pass()
	l.clock.Step(10 * time.Second)
	l.pass()
	if c, restores := l.etcdCluster().Status.Recovery.Choice, l.count("create", "etcdrestores"); c.Phase != api.RecoveryFailed || restores > 0 {
		t.Errorf("%d EtcdRestores were created, and the choice is %+v", restores, c)
	}
}

func TestNothingFollowsAChoiceThatIsNotRecorded(t *testing.T) {
	l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
	l.pass()
	l.clock.Step(10 * time.Second)
	l.watch()
	l.checkRecordedFirst()
}

// checkRecordedFirst fails the test unless the API server has the choice before anything exists that
// follows it.
func (l *lost) checkRecordedFirst() {
	l.t.Helper()
	up := l.refuseStatus()
	if _, err := l.c.pass(l.t.Context()); err == nil {
		l.t.Error("the pass succeeded without a status")
	}
	if n := l.count("create", "etcdbackups"); n != 0 {
		l.t.Errorf("%d EtcdBackups were created", n)
	}
	up()
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryBackingUp {
		l.t.Errorf("the choice is %+v", c)
	}
}

func TestAnOperatorWithoutTheRightsSaysSo(t *testing.T) {
	l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "backup=nightly"})
	l.clusters.PrependReactor("list", "etcdbackups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "etcdbackups"}, "", nil)
	})
	l.pass()
	l.clock.Step(10 * time.Second)
	c := l.pass().Choice
	if c == nil || c.Phase != api.RecoveryRefused || !strings.Contains(c.Reason, "grant the service account of the etcd operator to list etcdbackups") {
		t.Errorf("the choice is %+v", c)
	}
}
