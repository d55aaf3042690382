//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// largeBackup is the size in MiB of a database whose transfer takes long enough.
const largeBackup = 300

// takeLarge takes a large backup of an etcd beside the cluster, with a key "kept".
func (r *restores) takeLarge(mib int) {
	r.t.Helper()
	release := members.ReleaseOf(r.t, "3.6")
	source := release.Start(r.t, members.Options{Flags: []string{"--unsafe-no-fsync", "--max-request-bytes", fmt.Sprint(16 << 20), "--snapshot-count", "200"}})
	client := source.Client(r.t)
	write := func(what string, puts ...clientv3.Op) {
		r.t.Helper()
		harness.Wait(r.t, "write "+what, harness.Settle, func(ctx context.Context) error {
			_, err := client.Txn(ctx).Then(puts...).Commit() // again if a slow disk kept etcd from it
			return err
		})
	}
	value := make([]byte, 1<<20)
	for i := 0; i < mib; i += 8 {
		var puts []clientv3.Op
		for j := range 8 {
			_, _ = rand.Read(value)
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("filling/%d", i+j), string(value)))
		}
		write(fmt.Sprintf("%d MiB", i+8), puts...)
	}
	write("kept", clientv3.OpPut("kept", "yes"))
	path := filepath.Join(r.t.TempDir(), "snapshot.db")
	release.Run(r.t, "etcdctl", "--endpoints", source.Members[0].URL, "snapshot", "save", path)
	source.Members[0].Kill(r.t)
	file, err := os.Open(path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	r.minio.Put(r.t, bucket, "large", file, map[string]string{"etcd-version": release.Version})
}

// A large backup arrives over a slow line whose ends fail: no byte is sent twice, and no
// process holds the backup in memory. The line is so slow that each disturbance comes long
// before the next stage.
func TestRestoreOfALargeBackupOverABadLine(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.takeLarge(largeBackup)
	spec := r.spec("large", "large")
	spec.ClusterTemplate = template(t, v1beta2.ClusterSpec{Size: 1, Version: etcd36})
	operator := r.readyOperator()
	hasten := r.Hinder(operator, "etcd-restore-operator", "tcp sport 19999 limit rate over 10 mbytes/second drop")
	defer hasten()
	restore := r.CreateRestore(spec)
	restore.AwaitPhase(v1beta2.RestorePhaseStarting)
	var pod *corev1.Pod
	come := int64(0)
	// until waits until this much has arrived, and fails the test if the amount shrinks.
	until := func(mib int64) {
		t.Helper()
		harness.Wait(t, fmt.Sprintf("%d MiB have come", mib), harness.Settle, func(context.Context) error {
			pods := r.podsOfCluster("large")
			if len(pods) != 1 || pod != nil && pods[0].UID != pod.UID {
				return fmt.Errorf("pods %v", names(pods))
			}
			pod = pods[0]
			size, err := harness.SizeIn(pod, "etcd-operator", "/var/etcd-restore/snapshot.db.part")
			if err != nil {
				return err
			}
			if size < come {
				t.Errorf("of %d bytes that had come, %d are left", come, size)
			}
			if come = size; size < mib<<20 {
				return fmt.Errorf("%d bytes", size)
			}
			return nil
		})
	}
	until(40)
	r.CrashRestoreOperator()
	until(100)
	r.minio.Restart(t)
	until(160)
	bytes, err := harness.ResidentBytes(operator, "etcd-restore-operator")
	if err != nil {
		t.Fatal(err)
	}
	if bytes > 128<<20 {
		t.Errorf("the restore operator holds %d MiB", bytes>>20)
	}
	// The member restarts its incomplete data directory.
	release := r.Throttle(pod, "etcd-operator")
	defer release()
	hasten()
	harness.Wait(t, "etcd's own tool at work", harness.Settle, func(context.Context) error {
		_, err := harness.Process(pod, "etcdutl")
		return err
	})
	r.CrashContainer(pod, "etcd-operator")
	release()
	obj := restore.WaitSucceeded()
	cluster, _ := r.checkRestored("large", obj)
	if log := r.Shell("kubectl logs " + pod.Name + " -c fetch-backup"); strings.Count(log, "the next attempt is in") < 1 {
		t.Error("nothing was in its way")
	}
	for _, status := range cluster.Pods()[0].Status.InitContainerStatuses {
		want := int32(0)
		if status.Name == "restore-backup" {
			want = 1
		}
		if status.RestartCount != want {
			t.Errorf("%s restarted %d times, want %d", status.Name, status.RestartCount, want)
		}
	}
	if obj.Status.Backup.Size < largeBackup<<20 {
		t.Errorf("the backup has %d bytes", obj.Status.Backup.Size)
	}
	t.Logf("it took %s", obj.Status.CompletionDate.Sub(obj.Status.StartDate.Time).Round(time.Second))
}

// podsOfCluster returns the pods of a cluster without a handle in the test.
func (r *restores) podsOfCluster(name string) []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range r.Pods() {
		if pod.Labels["etcd_cluster"] == name {
			found = append(found, pod)
		}
	}
	return found
}
