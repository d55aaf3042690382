//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

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
