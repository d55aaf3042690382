//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// Clients write all the time. The log survives the end of the backup operator and of the
// member that it reads from. A copy of the cluster at a revision after the backup has each key
// as it was, and the cluster itself goes back to a moment. A test of the backup restores a random
// revision of the log.
func TestAClusterComesBackAtAnyMoment(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.DeployBackupOperator(nil)
	cluster := r.Create(3, etcd36)
	r.cluster = cluster
	cluster.WaitSettled()
	cluster.Put("before", "the log") // the test of a restore may choose the revision of the first backup
	spec := r.backups.spec("etcd")
	spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 86400}
	spec.Continuous = &v1beta2.ContinuousBackup{MaxLagInSecond: 1}
	backup := r.CreateBackup("log", spec)
	base := backup.Wait("a backup after the begin of the log", harness.Settle, func(obj *v1beta2.EtcdBackup) error {
		if st := obj.Status.Continuous; st == nil || !st.Recording || st.StartDate == nil || !backedUpSince(&obj.Status, st.StartDate) {
			return fmt.Errorf("the log is %+v", st)
		}
		return nil
	})

	writer := cluster.StartWriter()
	marks := make([]time.Time, 3)
	var seen int64
	for i := range marks {
		cluster.Put("mark", strconv.Itoa(i))
		marked := revision(t, cluster)
		if i == 1 {
			seen = marked
		}
		// The log dates a revision by when the operator has received it.
		harness.Wait(t, "the mark is in the log", harness.Settle, func(context.Context) error {
			for _, key := range r.keys() {
				if segment, ok := changelog.ParseKey("etcd", key); ok && segment.Last >= marked {
					return nil
				}
			}
			return fmt.Errorf("revision %d is not", marked)
		})
		marks[i] = time.Now().Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(marks[i].Add(time.Second)))
		switch i {
		case 0:
			r.CrashBackupOperator()
		case 1:
			r.DeletePod(cluster.Pods()[0])
			cluster.WaitSettled()
		}
	}
	end := marks[len(marks)-1]
	obj := backup.Wait("a log up to the last mark", harness.Settle, func(obj *v1beta2.EtcdBackup) error {
		st := obj.Status.Continuous
		if st == nil || st.NewestDate == nil || st.NewestDate.Time.Before(end) || !st.Recording {
			return fmt.Errorf("the log is %+v", st)
		}
		return nil
	})
	if st := obj.Status.Continuous; st.Gaps != 0 || !st.StartDate.Equal(base.Status.Continuous.StartDate) || obj.Status.Key != base.Status.Key || st.NewestRevision <= seen || st.Reason != "" {
		t.Errorf("the log has a gap: %+v, after %+v; the backup is %s, and was %s", st, base.Status.Continuous, obj.Status.Key, base.Status.Key)
	}
	for _, key := range r.keys() {
		_, _, aBackup := backupobject.ParseKey("etcd", key)
		if _, aSegment := changelog.ParseKey("etcd", key); !aBackup && !aSegment {
			t.Errorf("the bucket holds %s", key)
		}
	}
	checkSeries(t, logSeries, nil, r.FromBackupOperator)

	// A random revision of the log is restored, and found good.
	backup.Edit(func(s *v1beta2.BackupSpec) { s.RestoreTest = &v1beta2.RestoreTest{} })
	if st := waitTested(backup).Status.RestoreTest; st.Result != v1beta2.RestoreTestPassed || st.Revision < base.Status.EtcdRevision || st.EtcdRevision != st.Revision || st.Keys == 0 {
		t.Errorf("the test of a revision after %d ended with %+v", base.Status.EtcdRevision, st)
	}
	backup.Edit(func(s *v1beta2.BackupSpec) { s.RestoreTest = nil })

	// A copy, beside the cluster.
	asked := r.backups.source("etcd")
	copied := r.CreateRestore(v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.EtcdClusterRef{Name: "copy"}, BackupStorageType: v1beta2.BackupStorageTypeS3, BackupSource: asked,
		Pick: v1beta2.RestorePickNewest, Revision: seen, ClusterTemplate: template(t, v1beta2.ClusterSpec{Size: 1, Version: etcd36}),
	}).WaitSucceeded()
	if b := copied.Status.Backup; b.Revision != seen || b.EtcdRevision >= seen || b.SnapshotSize == 0 || b.Size <= b.SnapshotSize {
		t.Errorf("revision %d was to come back by the log: %+v", seen, b)
	}
	checkSame(t, cluster, r.Adopt("copy"), seen)
	cluster.VerifyWrites(writer)

	// The cluster itself, to the first mark.
	back := r.CreateRestore(v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.EtcdClusterRef{Name: cluster.Name}, BackupStorageType: v1beta2.BackupStorageTypeS3, BackupSource: asked,
		Pick: v1beta2.RestorePickNewest, Time: &metav1.Time{Time: marks[0]},
	})
	restored := back.WaitSucceeded()
	cluster = r.Adopt(cluster.Name)
	cluster.WaitSettled()
	if got, b := cluster.Get("mark"), restored.Status.Backup; got != "0" || b.Revision == 0 || b.Revision >= seen || b.BumpRevision < 1_000_000_000 {
		t.Errorf("at %s the mark was 0, and came back as %q: %+v", marks[0], got, b)
	}
	// The restored cluster has a log of its own.
	again := backup.Wait("the log of the restored cluster", harness.Settle, func(obj *v1beta2.EtcdBackup) error {
		st := obj.Status.Continuous
		if st == nil || !st.Recording || st.ClusterID == base.Status.Continuous.ClusterID || !backedUpSince(&obj.Status, st.StartDate) {
			return fmt.Errorf("the log is %+v", st)
		}
		return nil
	})
	if st := again.Status.Continuous; st.Gaps != 1 || st.LastGap == "" {
		t.Errorf("the status lacks the gap: %+v", st)
	}
	r.CheckNoSecretIsTold()
}

// backedUpSince reports whether the last attempt has made a backup, and began after a moment.
func backedUpSince(st *v1beta2.BackupStatus, moment *metav1.Time) bool {
	return st.Phase == v1beta2.BackupPhaseWaiting && st.Succeeded && !st.LastExecutionDate.Before(moment)
}

// checkSame fails the test unless a copy has each key as the cluster had it at a revision.
func checkSame(t *testing.T, cluster, other *harness.Cluster, revision int64) {
	t.Helper()
	all := func(of *harness.Cluster, options ...clientv3.OpOption) (resp *clientv3.GetResponse) {
		harness.Wait(t, "all keys of "+of.Name, harness.Settle, func(ctx context.Context) error {
			client, err := of.Client()
			if err != nil {
				return err
			}
			defer client.Close()
			resp, err = client.Get(ctx, "\x00", append(options, clientv3.WithFromKey())...)
			return err
		})
		return resp
	}
	want, got := all(cluster, clientv3.WithRev(revision)), all(other)
	if len(want.Kvs) != len(got.Kvs) || got.Header.Revision != revision {
		t.Fatalf("the copy is at revision %d with %d keys, want %d with %d", got.Header.Revision, len(got.Kvs), revision, len(want.Kvs))
	}
	for i := range want.Kvs {
		if want.Kvs[i].String() != got.Kvs[i].String() {
			t.Errorf("the copy has %s, want %s", got.Kvs[i], want.Kvs[i])
		}
	}
}
