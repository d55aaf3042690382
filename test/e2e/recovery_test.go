//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// acknowledged writes until its context ends, and returns the revisions of the acknowledged
// writes, by key.
func acknowledged(ctx context.Context, t *testing.T, cluster *harness.Cluster) (stop func() map[string]int64) {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	acked := map[string]int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			put, end := context.WithTimeout(ctx, time.Second)
			key := fmt.Sprintf("load/%06d", i)
			if resp, err := client.Put(put, key, strconv.Itoa(i)); err == nil {
				acked[key] = resp.Header.Revision
			}
			end()
		}
	}()
	return func() map[string]int64 {
		cancel()
		<-done
		client.Close()
		return acked
	}
}

// Two of three members lose their volumes under load. The status says what each way out loses, a
// person chooses the survivor by an annotation, and the cluster has lost just that. The operators
// are killed on the way.
func TestAPersonChoosesTheSurvivorOfALostQuorum(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.DeployBackupOperator(nil)
	cluster := r.CreateObject(onVolumes(3, etcd36))
	r.cluster = cluster
	before := cluster.WaitSettled()
	cluster.Put("kept", "yes")
	r.CreateBackup("base", r.backups.spec("base")).WaitSucceeded(cluster.Object().CreationTimestamp.Time)

	recovery := func(what string, is func(*v1beta2.RecoveryStatus) bool) *v1beta2.RecoveryStatus {
		t.Helper()
		return waitRecovery(t, cluster, what, is)
	}

	// A choice while there is a quorum does nothing, also not later.
	chooseWay(r, cluster, "backup=base")
	recovery("the choice refused", func(st *v1beta2.RecoveryStatus) bool {
		return st.Choice != nil && st.Choice.Phase == v1beta2.RecoveryFailed && strings.Contains(st.Choice.Reason, "the cluster has a quorum")
	})

	stop := acknowledged(t.Context(), t, cluster)
	time.Sleep(5 * time.Second)
	pods := cluster.Pods()
	survivor := pods[2]
	loseWithVolumes(r, cluster, pods[:2]...)
	time.Sleep(2 * time.Second)
	acked := stop()
	last := slices.Max(slices.Collect(maps.Values(acked)))

	st := recovery("the ways out, without a return", func(st *v1beta2.RecoveryStatus) bool {
		return len(st.Ways) == 2 && st.Ways[0].Way == v1beta2.RecoverySurvivor && st.Ways[1].Way == v1beta2.RecoveryBackup
	})
	way := st.Ways[0]
	t.Logf("the last acknowledged revision is %d, and the status knows %d: %s; %s", last, st.LastRevision, way.Message, st.Ways[1].Message)
	if way.Member != survivor.Name || st.LastRevision == 0 || st.LastRevision > last+1 || st.Choice == nil || st.Choice.Phase != v1beta2.RecoveryFailed {
		t.Errorf("status.recovery is %+v", st)
	}

	chooseWay(r, cluster, "survivor="+pods[0].Name)
	recovery("a dead member refused", func(st *v1beta2.RecoveryStatus) bool {
		return st.Choice != nil && st.Choice.Phase == v1beta2.RecoveryRefused && strings.Contains(st.Choice.Reason, survivor.Name)
	})
	restore := r.AdoptRestore(cluster.Name)
	begun := time.Now()
	chooseWay(r, cluster, "survivor="+survivor.Name)
	recovery("the choice followed", func(st *v1beta2.RecoveryStatus) bool {
		return st.Choice != nil && st.Choice.StartDate != ""
	})
	r.CrashOperator()
	restore.AwaitPhase(v1beta2.RestorePhaseStopping)
	r.CrashRestoreOperator()
	obj := restore.WaitSucceeded()
	t.Logf("back %s after the choice", time.Since(begun).Round(time.Second))
	cluster, members := r.checkRestored(cluster.Name, obj)
	checkStrange(t, members, cluster.Pods(), before[0])

	object := cluster.Object()
	if value, there := object.Annotations[v1beta2.RecoverAnnotation]; there || object.Status.Recovery != nil {
		t.Errorf("the annotation is %q, and status.recovery %+v", value, object.Status.Recovery)
	}
	if kept := slices.Collect(maps.Keys(oldVolumes(t, r.Namespace, obj))); !slices.Equal(kept, []string{survivor.Name}) {
		t.Errorf("the old volumes are %v", kept)
	}
	if obj.Status.Backup.EtcdRevision != way.Revision || !obj.Status.Backup.Uncertain {
		t.Errorf("the restored backup is %+v, and the survivor had revision %d", obj.Status.Backup, way.Revision)
	}
	checkLoss(t, cluster, acked, way.Revision)
}

// Two of three members lose their volumes at night. The operator announces the way out, and takes it
// when the patience is over, although it was killed meanwhile.
func TestAClusterRecoversItselfWithinItsBounds(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.DeployBackupOperator(nil)
	asked := onVolumes(3, etcd36)
	patience := int64(60)
	asked.Spec.Recovery = &v1beta2.RecoveryPolicy{Mode: v1beta2.RecoveryAutomatic, PatienceInSecond: &patience}
	cluster := r.CreateObject(asked)
	r.cluster = cluster
	before := cluster.WaitSettled()
	r.CreateBackup("base", r.backups.spec("base")).WaitSucceeded(cluster.Object().CreationTimestamp.Time)
	cluster.Put("kept", "yes")

	pods := cluster.Pods()
	survivor := pods[2]
	lost := time.Now()
	loseWithVolumes(r, cluster, pods[:2]...)
	restore := r.AdoptRestore(cluster.Name)
	st := waitRecovery(t, cluster, "the announcement", func(st *v1beta2.RecoveryStatus) bool {
		return st.Automatic != nil && st.Automatic.Phase == v1beta2.AutomaticWaiting
	})
	if a := st.Automatic; a.Value != "survivor="+survivor.Name+",store=base" || a.Time == "" || st.Choice != nil {
		t.Errorf("the operator announces %+v, and status.recovery is %+v", a, st)
	}
	r.CrashOperator()
	waitRecovery(t, cluster, "the choice of the operator", func(st *v1beta2.RecoveryStatus) bool {
		return st.Choice != nil && st.Choice.Automatic
	})
	if early := time.Since(lost); early < time.Duration(patience)*time.Second {
		t.Errorf("the operator took a way out after %s", early)
	}
	// What was written after the backup is there.
	cluster, members := r.checkRestored(cluster.Name, restore.WaitSucceeded())
	checkStrange(t, members, cluster.Pods(), before[0])
}

// The only survivor has restarted. It has no volume, and etcd serves no clients without a quorum. A container
// that the operator adds to its pod serves its data to clients with a certificate.
func TestASurvivorThatHasRestartedIsAWayOut(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.DeployBackupOperator(nil)
	p := newPKI(t, r.Namespace)
	p.write("server")
	p.write("operator")
	cluster := r.CreateObject(p.cluster(3, etcd36, func(s *v1beta2.StaticTLS) { s.Member.PeerSecret = "" }))
	r.cluster = cluster
	before := cluster.WaitSettled()
	r.CreateBackup("base", r.backups.spec("base")).WaitSucceeded(cluster.Object().CreationTimestamp.Time)
	cluster.Put("kept", "yes")

	pods := cluster.Pods()
	survivor := pods[2]
	cluster.LoseMembers(pods[:2]...)
	cluster.CrashMember(survivor)
	st := waitRecovery(t, cluster, "the survivor that serves no clients", func(st *v1beta2.RecoveryStatus) bool {
		return slices.ContainsFunc(st.Ways, func(w v1beta2.RecoveryWay) bool {
			return w.Way == v1beta2.RecoverySurvivor && w.Member == survivor.Name && w.NotServing
		})
	})
	t.Logf("%+v", st.Ways)
	restore := r.AdoptRestore(cluster.Name)
	begun := time.Now()
	chooseWay(r, cluster, "survivor="+survivor.Name)
	waitRecovery(t, cluster, "the choice followed", func(st *v1beta2.RecoveryStatus) bool {
		return st.Choice != nil && st.Choice.StartDate != ""
	})
	r.CrashOperator()
	obj := restore.WaitSucceeded()
	t.Logf("back %s after the choice", time.Since(begun).Round(time.Second))
	// What was written after the backup is there.
	cluster, members := r.checkRestored(cluster.Name, obj)
	checkStrange(t, members, cluster.Pods(), before[0])
}

// chooseWay names a way out, as a person does.
func chooseWay(r *restores, cluster *harness.Cluster, value string) {
	r.t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"` + v1beta2.RecoverAnnotation + `":` + strconv.Quote(value) + `}}}`)
	if _, err := r.EtcdClusters.EtcdV1beta2().EtcdClusters(r.Name).Patch(r.t.Context(), cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// waitRecovery waits for a state of status.recovery.
func waitRecovery(t *testing.T, cluster *harness.Cluster, what string, is func(*v1beta2.RecoveryStatus) bool) (st *v1beta2.RecoveryStatus) {
	t.Helper()
	harness.Wait(t, what, harness.Settle, func(context.Context) error {
		if st = cluster.Status().Recovery; st == nil || !is(st) {
			return fmt.Errorf("status.recovery is %+v", st)
		}
		return nil
	})
	return st
}

// loseWithVolumes loses members whose volumes go with them.
func loseWithVolumes(r *restores, cluster *harness.Cluster, pods ...*corev1.Pod) {
	r.t.Helper()
	for _, pod := range pods {
		if err := r.Kube.CoreV1().PersistentVolumeClaims(r.Name).Delete(r.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
	cluster.LoseMembers(pods...)
}

// checkLoss fails the test unless the acknowledged writes up to a revision are there, and no later
// ones.
func checkLoss(t *testing.T, cluster *harness.Cluster, acked map[string]int64, revision int64) {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	resp, err := client.Get(t.Context(), "load/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]int64{}
	for _, kv := range resp.Kvs {
		there[string(kv.Key)] = kv.ModRevision
	}
	lost := 0
	for key, at := range acked {
		switch got, found := there[key]; {
		case at > revision && found:
			t.Errorf("%s of revision %d is there, and the survivor had revision %d", key, at, revision)
		case at > revision:
			lost++
		case !found || got != at:
			t.Errorf("%s was acknowledged at revision %d, and is at %d", key, at, got)
		}
	}
	t.Logf("%d of %d acknowledged writes are lost", lost, len(acked))
	if resp.Header.Revision < 1_000_000_000 {
		t.Errorf("the revision is %d", resp.Header.Revision)
	}
}
