//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// A backup is restored beside its cluster, while a client writes, and found good. A damaged one
// and one without the expected key are found as well. No test leaves anything behind.
func TestBackupsAreProvedByRestoringThem(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.DeployBackupOperator(nil)
	cluster := r.Create(1, etcd36)
	r.cluster = cluster
	cluster.WaitSettled()
	cluster.Put("kept", "yes")
	writer := cluster.StartWriter()
	created := cluster.Object().CreationTimestamp.Time

	good := r.backups.spec("good")
	yes := "yes"
	good.RestoreTest = &v1beta2.RestoreTest{Check: &v1beta2.RestoreCheck{Key: "kept", Value: &yes}}
	passed := r.CreateBackup("good", good)
	lacking := r.backups.spec("lacking")
	lacking.RestoreTest = &v1beta2.RestoreTest{Check: &v1beta2.RestoreCheck{Key: "never-written"}}
	lacks := r.CreateBackup("lacking", lacking)
	corrupt := r.CreateBackup("corrupt", r.backups.spec("corrupt"))
	corrupt.WaitSucceeded(created)
	object := r.take(cluster)
	object.content[len(object.content)/2] ^= 1
	r.put("corrupt", object)
	corrupt.Edit(func(s *v1beta2.BackupSpec) { s.RestoreTest = &v1beta2.RestoreTest{} })

	for _, tt := range []struct {
		backup *harness.Backup
		result v1beta2.RestoreTestResult
		reason string
	}{
		{passed, v1beta2.RestoreTestPassed, ""},
		{lacks, v1beta2.RestoreTestFailed, `lacks the key "never-written"`},
		{corrupt, v1beta2.RestoreTestFailed, "damaged"},
	} {
		obj := waitTested(tt.backup)
		st := obj.Status.RestoreTest
		if st.Result != tt.result || !strings.Contains(st.Reason, tt.reason) || (tt.result == v1beta2.RestoreTestPassed) != (st.Keys > 0 && st.LastSuccessDate != nil) {
			t.Errorf("%s: %+v, want %s: %s", obj.Name, st, tt.result, tt.reason)
		}
		name := obj.Name + "-restore-test"
		harness.Wait(t, "nothing is left of "+name, harness.Settle, func(ctx context.Context) error {
			if _, err := r.EtcdClusters.EtcdV1beta2().EtcdClusters(r.Name).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the EtcdCluster is there: %w", err)
			}
			pods, err := r.Kube.CoreV1().Pods(r.Name).List(ctx, metav1.ListOptions{LabelSelector: manifest.PodSelector(name).String()})
			if err == nil && len(pods.Items) > 0 {
				err = fmt.Errorf("%d pods are there", len(pods.Items))
			}
			return err
		})
	}
	checkSeries(t, restoreTestSeries, nil, r.FromBackupOperator)
	cluster.WaitSettled()
	cluster.VerifyWrites(writer)
	r.CheckNoSecretIsTold()
}

// waitTested waits until a backup has been restored for a test, and returns the EtcdBackup.
func waitTested(backup *harness.Backup) *v1beta2.EtcdBackup {
	return backup.Wait("the result of its test", harness.Settle, func(b *v1beta2.EtcdBackup) error {
		if st := b.Status.RestoreTest; st == nil || st.Result == v1beta2.RestoreTestRunning {
			return fmt.Errorf("the test is %+v", st)
		}
		return nil
	})
}
