//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/members"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// restored bounds the duration of a restore, even of gigabytes.
const restored = 20 * time.Minute

// TestRestores measures the time from an EtcdRestore to a healthy cluster of three members, in
// turns with the creation of an empty one.
func TestRestores(t *testing.T) {
	n := harness.NewQuiet(t)
	b := &restoreBench{bench: bench{t: t, n: n}, release: members.ReleaseOf(t, "3.6"), minio: stores.MinIO(t, stores.Options{IP: n.HostIP(t)})}
	b.minio.CreateBucket(t, bucket)
	b.snapshot(databaseSize(100))
	n.SetSecret("aws", map[string][]byte{
		"credentials": fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", b.minio.AccessKey, b.minio.SecretKey),
		"config":      fmt.Appendf(nil, "[default]\nregion = %s\n", b.minio.Region),
	})
	n.DeployRestoreOperator(nil)
	for round := range *rounds {
		t.Logf("--- round %d of %d", round+1, *rounds)
		b.round(round)
	}
	report := machine(t, n) + "\n" + b.table.String()
	fmt.Printf("\n%s\n", report)
	if *document {
		if err := write(filepath.Join(n.Root, "doc", "benchmarks.md"), restores, report); err != nil {
			t.Error(err)
		}
	}
}

type restoreBench struct {
	bench
	release members.Release
	minio   *stores.MinIOServer
	size    int64 // of the backup, in bytes
}

// snapshot fills an etcd beside the cluster and stores its backup.
func (b *restoreBench) snapshot(size int64) {
	b.t.Helper()
	source := b.release.Start(b.t, members.Options{Flags: []string{
		"--quota-backend-bytes", fmt.Sprint(4 * size), "--max-request-bytes", fmt.Sprint(16 << 20), "--snapshot-count", "200", "--max-wals", "1", "--unsafe-no-fsync",
	}})
	fillDatabase(b.t, source.Client(b.t), size)
	path := filepath.Join(b.t.TempDir(), "snapshot.db")
	b.release.Run(b.t, "etcdctl", "--endpoints", source.Members[0].URL, "snapshot", "save", path)
	source.Members[0].Kill(b.t)
	file, err := os.Open(path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		b.t.Fatal(err)
	}
	b.size = info.Size()
	b.minio.Put(b.t, bucket, "large", file, map[string]string{"etcd-version": b.release.Version})
	if err := os.Remove(path); err != nil {
		b.t.Fatal(err)
	}
}

func (b *restoreBench) spec() v1beta2.ClusterSpec {
	spec := v1beta2.ClusterSpec{Size: 3, Version: b.release.Version}
	if quota := 4 * b.size; quota > 2<<30 { // etcd's own quota
		spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: fmt.Sprint(quota)}}}
	}
	return spec
}

// round creates an empty cluster, restores the backup into a new one, and, after the loss of
// all its pods, restores it in place.
func (b *restoreBench) round(round int) {
	b.t.Helper()
	name := fmt.Sprintf("empty-%d", round)
	var cluster *harness.Cluster
	b.measure("E: create an empty cluster of 3 members", aim{}, func() {
		cluster = b.n.CreateObject(&v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: b.spec()})
	}, func(ctx context.Context) error {
		_, err := cluster.Settled(ctx)
		return err
	})
	cluster.Delete()
	cluster.WaitGone(harness.Settle)

	text, err := json.Marshal(b.spec())
	if err != nil {
		b.t.Fatal(err)
	}
	name = fmt.Sprintf("restored-%d", round)
	spec := v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.EtcdClusterRef{Name: name}, BackupStorageType: v1beta2.BackupStorageTypeS3,
		BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{
			Path: bucket + "/large", AWSSecret: "aws", Endpoint: b.minio.Endpoint, ForcePathStyle: true,
		}},
		ClusterTemplate: &v1beta2.ClusterTemplate{Spec: runtime.RawExtension{Raw: text}},
	}
	restore := b.restore(fmt.Sprintf("restore %s into a new cluster of 3 members", mebibytes(b.size)), spec)
	cluster = b.n.Adopt(name)
	cluster.WaitSettled()
	b.pause(settleTime)
	restore.Delete()
	restore.WaitGone()

	for _, pod := range cluster.Pods() {
		b.n.DeletePod(pod)
	}
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	spec.ClusterTemplate = nil
	restore = b.restore(fmt.Sprintf("restore %s in place of 3 members whose pods are lost", mebibytes(b.size)), spec)
	restore.Delete()
	restore.WaitGone()
	cluster = b.n.Adopt(name)
	cluster.WaitSettled()
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
}

// restore measures until the restore has succeeded and the cluster is settled.
func (b *restoreBench) restore(what string, spec v1beta2.RestoreSpec) *harness.Restore {
	b.t.Helper()
	start := time.Now()
	restore := b.n.CreateRestore(spec)
	restore.Wait("succeeded", restored, func(obj *v1beta2.EtcdRestore) error {
		if !obj.Status.Succeeded {
			return errors.New("it has not succeeded")
		}
		return nil
	})
	cluster := b.n.Adopt(spec.EtcdCluster.Name)
	harness.Wait(b.t, what, restored, func(ctx context.Context) error {
		_, err := cluster.Settled(ctx)
		return err
	})
	b.table.add(what, aim{}, time.Since(start))
	if *trace {
		b.t.Log("\n" + strings.Join(b.n.Timeline(start), "\n"))
	}
	return restore
}
