//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// fill writes so much that a backup is uploaded in several parts.
func (b *backups) fill() {
	b.t.Helper()
	client, err := b.cluster.Client()
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	harness.Wait(b.t, "etcd filled", harness.Settle, func(ctx context.Context) error {
		value := make([]byte, 512<<10)
		for i := range 100 {
			_, _ = rand.Read(value)
			if _, err := client.Put(ctx, fmt.Sprintf("filling/%03d", i), string(value)); err != nil {
				return err // again if a slow disk kept etcd from it
			}
		}
		return nil
	})
}

// stall creates a backup whose store has stopped to answer. It returns when the operator reads
// the snapshot and has sent the store a request.
func (b *backups) stall(name string, spec v1beta2.BackupSpec) *harness.Backup {
	b.t.Helper()
	b.minio.Freeze(b.t)
	backup := b.CreateBackup(name, spec)
	b.waitRunning(backup)
	b.minio.AwaitRequest(b.t)
	return backup
}

func (b *backups) waitRunning(backup *harness.Backup) {
	b.t.Helper()
	backup.Wait("under way", harness.Backed, func(obj *v1beta2.EtcdBackup) error {
		if obj.Status.Phase != v1beta2.BackupPhaseRunning {
			return errors.New("it is not under way")
		}
		return nil
	})
}

// checkOnly fails the test unless the bucket holds only this key, complete. It ignores parts
// of uploads: if the store or the operator dies, they stay until a sweep a day later. The
// tests of the stores check for others.
func (b *backups) checkOnly(key string, obj *v1beta2.EtcdBackup) {
	b.t.Helper()
	if keys := b.keys(); !slices.Equal(keys, []string{key}) {
		b.t.Errorf("the bucket holds %v, want %s", keys, key)
	}
	b.checkStored(obj)
}

// clear deletes the backup that was cut off, and all objects.
func (b *backups) clear() {
	b.t.Helper()
	b.ShellWithin(harness.Settle, "kubectl delete etcdbackup --all --timeout=1m")
	name := bucket
	for _, key := range b.keys() {
		if _, err := b.minio.Client().DeleteObject(b.t.Context(), &s3.DeleteObjectInput{Bucket: &name, Key: &key}); err != nil {
			b.t.Fatalf("delete %s: %v", key, err)
		}
	}
}

// Whatever dies during a backup, the correct backup exists in the end, and nothing of failed
// ones.
func TestBackupsThatAreCutOff(t *testing.T) {
	t.Parallel()
	b := newBackups(t, func(n *harness.Namespace) *harness.Cluster { return n.Create(1, "") })
	b.setCredentials(b.minio.SecretKey)
	for _, c := range []struct {
		name string
		cut  func(*testing.T, *backups)
	}{
		{"it takes too long", func(_ *testing.T, b *backups) {
			spec := b.spec("etcd.backup")
			spec.BackupPolicy = &v1beta2.BackupPolicy{TimeoutInSecond: 20} // enough for the next attempt
			backup := b.stall("cut", spec)
			waitReason(backup, "timeoutInSecond")
			b.minio.Thaw(b.t)
			b.checkOnly("etcd.backup", backup.WaitSucceeded(time.Time{}))
			b.fill() // the attempt in time had little work
		}},
		{"the store dies", func(_ *testing.T, b *backups) {
			backup := b.stall("cut", b.spec("etcd.backup"))
			b.minio.Kill(b.t)
			waitReason(backup, "mybucket")
			b.minio.Restart(b.t)
			b.checkOnly("etcd.backup", backup.WaitSucceeded(time.Time{}))
		}},
		{"the member dies", func(t *testing.T, b *backups) {
			backup := b.stall("cut", b.spec("etcd.backup"))
			pod := b.cluster.Pods()[0]
			b.cluster.CrashMember(pod)
			b.minio.Thaw(b.t)
			b.cluster.WaitRestarted(pod)
			b.checkOnly("etcd.backup", backup.WaitSucceeded(time.Time{}))
			harness.Wait(t, "event Backup Failed of the attempt that lost its member", 15*time.Second, func(context.Context) error {
				if told := backup.EventMessages("Backup Failed"); len(told) == 0 {
					return errors.New("there is none")
				}
				return nil
			})
		}},
		{"the operator dies", func(_ *testing.T, b *backups) {
			spec := b.spec("etcd.backup")
			spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 3600}
			backup := b.stall("cut", spec)
			b.CrashBackupOperator()
			b.minio.Thaw(b.t)
			obj := backup.WaitSucceeded(time.Time{})
			b.CrashBackupOperator()
			b.WaitBackupOperator()
			harness.Holds(b.t, "one backup for one time of the schedule", 20*time.Second, func(ctx context.Context) error {
				keys, err := b.tryKeys(ctx)
				if err == nil && len(keys) != 1 {
					err = fmt.Errorf("the bucket holds %v", keys)
				}
				return err
			})
			b.checkStored(obj)
		}},
		{"its pod is lost", func(_ *testing.T, b *backups) {
			b.ShellWithin(harness.Settle, "kubectl scale deployment/etcd-backup-operator --replicas=2 && kubectl rollout status deployment/etcd-backup-operator --timeout=2m")
			spec := b.spec("etcd.backup")
			spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 3600}
			backup := b.stall("cut", spec)
			holder := strings.TrimSpace(b.Shell("kubectl get lease etcd-backup-operator -o jsonpath='{.spec.holderIdentity}'"))
			b.Shell("kubectl delete pod --force --grace-period=0 " + holder)
			b.minio.Thaw(b.t)
			obj := backup.WaitSucceeded(time.Time{})
			if keys := b.keys(); len(keys) != 1 {
				b.t.Errorf("the bucket holds %v", keys)
			}
			b.checkStored(obj)
		}},
		{"the spec is edited", func(_ *testing.T, b *backups) {
			backup := b.stall("cut", b.spec("old"))
			backup.Edit(func(s *v1beta2.BackupSpec) { s.S3.Path = bucket + "/new" })
			b.minio.Thaw(b.t)
			b.checkOnly("new", backup.WaitSucceeded(time.Time{}))
		}},
		{"the object is deleted", func(t *testing.T, b *backups) {
			spec := b.spec("etcd.backup")
			spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 3600}
			backup := b.stall("cut", spec)
			backup.Delete()
			backup.WaitGone()
			b.minio.Thaw(b.t)
			// The store may still answer requests from before its stop.
			harness.Holds(t, "nothing is stored", 10*time.Second, func(ctx context.Context) error {
				keys, err := b.tryKeys(ctx)
				if err == nil && len(keys) > 0 {
					err = fmt.Errorf("the bucket holds %v", keys)
				}
				return err
			})
		}},
	} {
		t.Log(c.name)
		c.cut(t, b)
		b.clear()
	}
}

// An operator for all namespaces takes the backups with the annotation, and leaves the others
// to the operators of their namespaces.
func TestBackupsClusterWide(t *testing.T) {
	t.Parallel()
	b := newBackups(t, nil)
	b.setCredentials(b.minio.SecretKey)
	wide := harness.NewNamespace(t)
	wide.DeployBackupOperator(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Command = append(d.Spec.Template.Spec.Containers[0].Command, "-cluster-wide")
	})
	// The namespace's own operator stops, so that the test sees what the other one takes.
	b.ShellWithin(2*time.Minute, "kubectl delete deployment etcd-backup-operator && kubectl wait --for=delete pod -l name=etcd-backup-operator --timeout=100s")
	theirs := b.CreateBackup("namespaced", b.spec("namespaced"))
	ours := b.CreateBackup("wide", b.spec("wide"))
	b.Shell("kubectl annotate etcdbackup wide etcd.database.coreos.com/scope=clusterwide")
	ours.WaitSucceeded(time.Time{})
	if s := theirs.Get().Status; s.Phase != v1beta2.BackupPhaseNone {
		t.Errorf("the operator for all namespaces took what was not annotated: %+v", s)
	}
	if keys := b.keys(); !slices.Equal(keys, []string{"wide"}) {
		t.Errorf("the bucket holds %v", keys)
	}
	b.DeployBackupOperator(nil)
	theirs.WaitSucceeded(time.Time{})
}
