// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// twoLeft is a cluster of five of which a and b are left. a has applied one write more. The log of b has the
// write too, and one after it: a leader that is gone may have counted b for both.
func twoLeft(t *testing.T, annotations map[string]string) *lost {
	t.Helper()
	l := loseAllBut(t, 2, annotations, "a", "b", "d", "e", "f")
	l.members["a"].says[0].Revision, l.members["a"].says[0].RaftApplied = 84, 101
	l.members["b"].says[0].Revision, l.members["b"].says[0].RaftApplied = 83, 100
	l.members["a"].served = &etcd.Status{MemberID: 1, RaftTerm: 4, RaftIndex: 101}
	l.members["b"].served = &etcd.Status{MemberID: 2, RaftTerm: 4, RaftIndex: 102}
	return l
}

var runsNow = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// lookAgain makes a pass after the time between two looks at what is left.
func (l *lost) lookAgain() *api.RecoveryStatus {
	l.t.Helper()
	l.clock.Step(chosenPeriod)
	return l.pass()
}

func (l *lost) choose(value string) {
	l.t.Helper()
	l.edit(func(obj *api.EtcdCluster) { obj.Annotations = map[string]string{api.RecoverAnnotation: value} })
}

func TestTheSurvivorWithTheLongerLogIsChosen(t *testing.T) {
	l := twoLeft(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
	l.pass()
	l.clock.Step(10 * time.Second)
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryBackingUp || !strings.Contains(c.Reason, "a container of the pod b is to serve its log, because several members are left") {
		t.Fatalf("the choice is %+v", c)
	}
	if n := len(l.pod("b").Spec.EphemeralContainers); n != 1 {
		t.Fatalf("the pod b has %d containers that serve data", n)
	}
	l.serveDataOf("b", runsNow)
	c := l.lookAgain().Choice
	if c.Phase != api.RecoveryFailed || !strings.Contains(c.Reason, "the log of a ends with raft entry 101 of term 4, and that of b with 102 of term 4: a quorum may have agreed on what it lacks: choose b; the cluster is unchanged") {
		t.Fatalf("the choice is %+v", c)
	}
	if n := l.count("create", "etcdbackups"); n != 0 {
		t.Errorf("%d EtcdBackups were created", n)
	}
	l.clock.Step(time.Minute)
	if w := l.pass().Ways[0]; w.Member != "b" {
		t.Errorf("the first way out is %+v", w)
	}
	l.choose("survivor=b")
	for range 3 {
		c = l.lookAgain().Choice
	}
	if c == nil || c.Phase != api.RecoveryBackingUp || c.Value != "survivor=b" || c.Revision != 83 {
		t.Fatalf("the choice is %+v", c)
	}
	if once := l.backup(c.Backup); once.Annotations[api.SurvivorAnnotation] != "b" {
		t.Errorf("the annotations of the EtcdBackup are %v", once.Annotations)
	}
	l.choose("survivor=a")
	if c := l.lookAgain().Choice; c.Phase != api.RecoveryRefused || !strings.Contains(c.Reason, "choose b") {
		t.Errorf("once both logs are known, the choice of a is %+v", c)
	}
}

// A term counts before an index: a later leader may have replaced the end of a longer log.
func TestALaterTermMakesALogTheLongerOne(t *testing.T) {
	l := twoLeft(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
	l.members["a"].served.RaftTerm = 5
	l.serveDataOf("b", runsNow)
	l.pass()
	l.clock.Step(10 * time.Second)
	if c := l.pass().Choice; c == nil || c.Phase != api.RecoveryBackingUp {
		t.Fatalf("the choice is %+v", c)
	}
	if n := l.count("create", "etcdbackups"); n != 1 {
		t.Errorf("%d EtcdBackups were created", n)
	}
}

// Old releases of Kubernetes add no container to a pod, and the data of a member may be unreadable.
func TestALogThatNobodyServesHoldsAChoiceForAWhileOnly(t *testing.T) {
	for name, serves := range map[string]bool{"no container runs": false, "it does not answer": true} {
		l := twoLeft(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
		l.members["b"].served = nil
		if serves {
			l.serveDataOf("b", runsNow)
		}
		l.pass()
		l.clock.Step(10 * time.Second)
		begun := l.clock.Now()
		for l.pass(); l.clock.Since(begun) < 2*time.Minute-chosenPeriod; l.lookAgain() {
		}
		if n := l.count("create", "etcdbackups"); n != 0 {
			t.Fatalf("%s: after %s, %d EtcdBackups were created", name, l.clock.Since(begun), n)
		}
		l.clock.Step(chosenPeriod)
		if c := l.lookAgain().Choice; c.Phase != api.RecoveryBackingUp || l.count("create", "etcdbackups") != 1 {
			t.Errorf("%s: the choice is %+v, and %d EtcdBackups were created", name, c, l.count("create", "etcdbackups"))
		}
	}
}

func TestTheAutomaticRecoveryTakesTheSurvivorWithTheLongerLog(t *testing.T) {
	l := twoLeft(t, nil)
	l.recoverItself()
	l.passesUntil(l.clock.Now().Add(10 * time.Minute))
	var c *api.RecoveryChoice
	for range 5 {
		c = l.lookAgain().Choice
	}
	if c == nil || c.Phase != api.RecoveryBackingUp || c.Value != "survivor=a,store=nightly" {
		t.Fatalf("the choice is %+v", c)
	}
	l.serveDataOf("b", runsNow)
	for range 3 {
		c = l.lookAgain().Choice
	}
	if c == nil || !c.Automatic || c.Phase != api.RecoveryBackingUp || c.Value != "survivor=b,store=nightly" {
		t.Fatalf("the choice is %+v", c)
	}
	if once := l.backup(c.Backup); once.Annotations[api.SurvivorAnnotation] != "b" || l.count("create", "etcdbackups") != 1 {
		t.Errorf("%d EtcdBackups were created, and this one has %v", l.count("create", "etcdbackups"), once.Annotations)
	}
}

// chooseTheLongerLog has the log of b chosen, which ends later. a has the higher revision.
func chooseTheLongerLog(t *testing.T, automatic bool) *lost {
	t.Helper()
	if !automatic {
		l := twoLeft(t, map[string]string{api.RecoverAnnotation: "survivor=b"})
		l.serveDataOf("b", runsNow)
		l.pass()
		l.clock.Step(10 * time.Second)
		l.pass()
		return l
	}
	l := twoLeft(t, nil)
	l.recoverItself()
	l.passesUntil(l.clock.Now().Add(10 * time.Minute))
	l.serveDataOf("b", runsNow)
	for range 5 {
		l.lookAgain()
	}
	return l
}

// A lost answer of a survivor is no news of it.
func TestALostAnswerDoesNotEndARecovery(t *testing.T) {
	restart := func(l *lost) { l.c = l.cluster(l.etcdCluster()) }
	for name, test := range map[string]struct {
		loses func(*lost)
		waits string
	}{
		"the log of the other one":  {func(l *lost) { l.members["a"].served = nil }, ""},
		"the log of the chosen one": {func(l *lost) { l.members["b"].served = nil }, ""},
		"the status of the chosen one": {func(l *lost) {
			l.members["b"].served, l.members["b"].refusal = nil, errors.New("lost")
		}, ""},
		"the log of the other one, for a new operator": {func(l *lost) {
			l.members["a"].served = nil
			restart(l)
		}, "the end of the log of a is not known"},
		"the log of the chosen one, for a new operator": {func(l *lost) {
			l.members["b"].served = nil
			restart(l)
		}, "the end of the log of b is not known"},
	} {
		for _, automatic := range []bool{false, true} {
			l := chooseTheLongerLog(t, automatic)
			before := l.etcdCluster().Status.Recovery.Choice
			if before == nil || before.Phase != api.RecoveryBackingUp || before.Automatic != automatic || !strings.HasPrefix(before.Value, "survivor=b") || before.Revision != 83 {
				t.Fatalf("%s: the choice is %+v", name, before)
			}
			answers := map[string]*etcd.Status{"a": l.members["a"].served, "b": l.members["b"].served}
			test.loses(l)
			l.passesUntil(l.clock.Now().Add(20 * time.Second))
			if c := l.lookAgain().Choice; c == nil || c.Phase != api.RecoveryBackingUp || c.Value != before.Value || !strings.Contains(c.Reason, test.waits) {
				t.Errorf("%s, automatic %t: the choice is %+v", name, automatic, c)
				continue
			}
			for member, answer := range answers {
				l.members[member].served, l.members[member].refusal = answer, nil
			}
			once := l.backup(before.Backup)
			once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: 83, Key: once.Spec.S3.Path}
			if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
				t.Fatal(err)
			}
			if c := l.lookAgain().Choice; c == nil || c.Phase != api.RecoveryRestoring {
				t.Errorf("%s, automatic %t: after the answers, the choice is %+v", name, automatic, c)
			}
		}
	}
}

// What a survivor has applied after its last answer is news.
func TestAnEntryAfterTheKnownEndOfALogCounts(t *testing.T) {
	l := chooseTheLongerLog(t, false)
	l.members["a"].served = nil
	l.members["a"].says[0].Revision, l.members["a"].says[0].RaftApplied = 90, 110
	l.passesUntil(l.clock.Now().Add(20 * time.Second))
	if c := l.lookAgain().Choice; c.Phase != api.RecoveryBackingUp || !strings.Contains(c.Reason, "the end of the log of a is not known") {
		t.Fatalf("the choice is %+v", c)
	}
	l.members["a"].served = &etcd.Status{MemberID: 1, RaftTerm: 5, RaftIndex: 110}
	if c := l.lookAgain().Choice; c.Phase != api.RecoveryFailed || !strings.Contains(c.Reason, "a has revision 90, and the choice restores 83") {
		t.Errorf("the choice is %+v", c)
	}
}

// An older container states the term 0 if the database of etcd 3.4 names none.
func TestALogOfAnUnknownTermIsNotCompared(t *testing.T) {
	l := twoLeft(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
	l.members["a"].served = &etcd.Status{MemberID: 1, RaftTerm: 0, RaftIndex: 101}
	l.members["b"].served = &etcd.Status{MemberID: 2, RaftTerm: 4, RaftIndex: 100}
	l.serveDataOf("b", runsNow)
	l.pass()
	l.passesUntil(l.clock.Now().Add(logWaited))
	if c := l.lookAgain().Choice; c == nil || c.Phase != api.RecoveryBackingUp || c.Revision != 84 {
		t.Fatalf("the choice is %+v", c)
	}
	if n := l.count("create", "etcdbackups"); n != 1 {
		t.Errorf("%d EtcdBackups were created", n)
	}
	l.choose("survivor=b")
	if c := l.lookAgain().Choice; c.Phase != api.RecoveryRefused || !strings.Contains(c.Reason, "b has revision 83, and a has 84: choose a") {
		t.Errorf("the choice of b is %+v", c)
	}
}

// logWaited is after the time that a choice waits for the ends of logs.
const logWaited = 3 * time.Minute

// Raft has no later log that lacks committed entries. The disk of such a member has lost them.
func TestTheAutomaticRecoveryKeepsItsBoundsForALongerLog(t *testing.T) {
	l := twoLeft(t, nil)
	l.members["b"].says[0].Revision, l.members["b"].says[0].RaftApplied = 70, 50
	l.members["b"].served = &etcd.Status{MemberID: 2, RaftTerm: 5, RaftIndex: 51}
	l.recoverItself()
	l.passesUntil(l.clock.Now().Add(10 * time.Minute))
	l.serveDataOf("b", runsNow)
	for range 5 {
		l.lookAgain()
	}
	c := l.etcdCluster().Status.Recovery.Choice
	if c == nil || c.Phase != api.RecoveryFailed || !strings.Contains(c.Reason, "b lacks at least 13 known revisions, and recovery.maxLostRevisions is 0") {
		t.Errorf("the choice is %+v", c)
	}
	if n := l.count("create", "etcdbackups"); n != 0 {
		t.Errorf("%d EtcdBackups were created", n)
	}
}

// The container of b answers after the choice has waited for it: b has a write that a lacks.
func TestALongerLogThatIsKnownLateEndsAChoice(t *testing.T) {
	for name, stored := range map[string]bool{"while the data is stored": false, "before the restore begins": true} {
		l := twoLeft(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
		late := l.members["b"].served
		l.members["b"].served = nil
		l.serveDataOf("b", runsNow)
		l.pass()
		l.clock.Step(10 * time.Second)
		c := l.passesUntil(l.clock.Now().Add(logWaited)).Choice
		if c == nil || c.Phase != api.RecoveryBackingUp || l.count("create", "etcdbackups") != 1 {
			t.Fatalf("%s: the choice is %+v, and %d EtcdBackups were created", name, c, l.count("create", "etcdbackups"))
		}
		if stored {
			one := int64(1)
			once := l.backup(c.Backup)
			once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: 84, UnappliedEntries: &one, Key: once.Spec.S3.Path}
			if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
				t.Fatal(err)
			}
			if c = l.lookAgain().Choice; c.Phase != api.RecoveryRestoring {
				t.Fatalf("%s: the choice is %+v", name, c)
			}
		}
		l.members["b"].served = late
		c = l.lookAgain().Choice
		if c.Phase != api.RecoveryFailed || !strings.Contains(c.Reason, "the log of a ends with raft entry 101 of term 4, and that of b with 102 of term 4: a quorum may have agreed on what it lacks: choose b; the cluster is unchanged") {
			t.Errorf("%s: the choice is %+v", name, c)
		}
	}
}
