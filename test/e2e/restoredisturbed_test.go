//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// hold is a finalizer of this test.
const hold = "e2e.test/hold"

// hold keeps an EtcdCluster that is deleted, until it is released.
func (r *restores) hold(cluster *harness.Cluster) (release func()) {
	r.t.Helper()
	change := func(finalizers ...string) {
		r.t.Helper()
		harness.Wait(r.t, "the finalizers of EtcdCluster "+cluster.Name, harness.Settle, func(ctx context.Context) error {
			now := cluster.Object()
			now.Finalizers = append(slices.DeleteFunc(now.Finalizers, func(f string) bool { return f == hold }), finalizers...)
			_, err := r.EtcdClusters.EtcdV1beta2().EtcdClusters(r.Name).Update(ctx, now, metav1.UpdateOptions{})
			return err
		})
	}
	change(hold)
	return func() { change() }
}

// applyInPlace applies an EtcdCluster as GitOps does, as soon as the one of the name is gone.
func (r *restores) applyInPlace(manifest *v1beta2.EtcdCluster) (made types.UID) {
	r.t.Helper()
	harness.Wait(r.t, "the EtcdCluster made by another client", harness.Settle, func(ctx context.Context) error {
		created, err := r.EtcdClusters.EtcdV1beta2().EtcdClusters(r.Name).Create(ctx, manifest.DeepCopy(), metav1.CreateOptions{})
		if err == nil {
			made = created.UID
		}
		return err
	})
	return made
}

// During an in-place restore, another client recreates the EtcdCluster, and another backup
// replaces the one in the store. The operator undoes the first. It reports the second, and
// uses the new backup only after the user asks for it. The restored data are one backup, not a
// mix of two. The other backup is from a cluster with a full database: its alarm must not
// return.
func TestRestoreThatOthersDisturb(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	manifest := object("etcd", 1, etcd36)
	manifest.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "2097152"}}}
	cluster := r.CreateObject(manifest.DeepCopy())
	cluster.WaitSettled()
	cluster.Put("kept", "yes")
	good := r.take(cluster)
	r.put("etcd.backup", good)
	cluster.Put("later", "yes")
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fill(t, client)
	full := r.take(cluster)

	r.StopOperator() // so that nothing is fetched before the disturbances are in place
	release := r.hold(cluster)
	restore := r.CreateRestore(r.spec(cluster.Name, "etcd.backup"))
	restore.Wait("the deleted EtcdCluster is kept", harness.Settle, func(obj *v1beta2.EtcdRestore) error {
		if !strings.Contains(obj.Status.Reason, "somebody else keeps it by the finalizers "+hold) {
			return errors.New("it is not")
		}
		return nil
	})
	r.put("etcd.backup", full)
	// The other client rarely wins against an operator that runs.
	r.StopRestoreOperator()
	release()
	theirs := r.applyInPlace(manifest)
	r.StartRestoreOperator()
	restore.Wait("the other client's EtcdCluster replaced", harness.Settle, func(obj *v1beta2.EtcdRestore) error {
		now := cluster.Object()
		if now == nil || now.UID == theirs || now.UID != obj.Status.ClusterUID || now.Annotations[v1beta2.RestoreAnnotation] == "" {
			return fmt.Errorf("there is %+v", now)
		}
		return nil
	})
	harness.Wait(t, "an event that reports it", harness.Settle, func(context.Context) error {
		if told := restore.EventMessages("Cluster Deleted"); !slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, string(theirs)) }) {
			return fmt.Errorf("%q", told)
		}
		return nil
	})
	r.StartOperator()

	restore.Wait("the replaced backup is reported", harness.Settle, func(obj *v1beta2.EtcdRestore) error {
		for _, words := range []string{fmt.Sprintf("it has %d bytes, and had %d", len(full.content), len(good.content)), "edits of the EtcdRestore are followed"} {
			if !strings.Contains(obj.Status.Reason, words) {
				return fmt.Errorf("it is not: no %q", words)
			}
		}
		return nil
	})
	if now := cluster.Status(); now.Phase != v1beta2.ClusterPhaseCreating {
		t.Errorf("the cluster is in phase %s without its backup", now.Phase)
	}
	copied := r.spec("copy", "etcd.backup") // the size of the current object, with a margin
	copied.ClusterTemplate = template(t, v1beta2.ClusterSpec{Size: 1, Version: etcd36})
	r.CreateRestore(copied).WaitSucceeded()
	second := r.Adopt("copy")
	second.WaitEvents(1, "Alarms Lifted")
	if second.Get("kept") != "yes" || second.Get("later") != "yes" {
		t.Error("the other backup is not what was restored from it")
	}
	second.Put("again", "yes")

	r.put("etcd.backup", good)
	restore.Edit(func(s *v1beta2.RestoreSpec) { s.Pick = v1beta2.RestorePickExact }) // start over with the new object
	r.checkRestored(cluster.Name, restore.WaitSucceeded())
	checkSeries(t, "etcd_restore_operator_", nil, r.FromRestoreOperator)
	r.CheckNoSecretIsTold()
}
