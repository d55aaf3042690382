//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backup"
	versionedfake "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	"github.com/etcd-operator/etcd-operator/test/members"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// place is a store with a bucket, and the part of a spec that names it.
type place struct {
	storageType api.BackupStorageType
	source      func(key string) api.BackupSource
	secret      map[string][]byte
	volumeDir   string
}

func s3(t *testing.T) place {
	minio := stores.MinIO(t, stores.Options{})
	minio.CreateBucket(t, "bucket")
	return place{
		storageType: api.BackupStorageTypeS3,
		source: func(key string) api.BackupSource {
			return api.BackupSource{S3: &api.S3BackupSource{Path: "bucket/" + key, AWSSecret: "credentials", Endpoint: minio.Endpoint, ForcePathStyle: true}}
		},
		secret: map[string][]byte{
			"credentials": fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", minio.AccessKey, minio.SecretKey),
			"config":      fmt.Appendf(nil, "[default]\nregion = %s\n", minio.Region),
		},
	}
}

func gcs(t *testing.T) place {
	google := stores.FakeGCS(t, stores.Options{})
	google.CreateBucket(t, "bucket")
	return place{
		storageType: api.BackupStorageTypeGCS,
		source: func(key string) api.BackupSource {
			return api.BackupSource{GCS: &api.GCSBackupSource{Path: "bucket/" + key, GCPSecret: "credentials", Endpoint: google.Endpoint}}
		},
		secret: map[string][]byte{"credentials.json": stores.GoogleServiceAccount(t, stores.Options{})},
	}
}

func abs(t *testing.T) place {
	azure := stores.Azurite(t, stores.Options{})
	azure.CreateContainer(t, "container")
	return place{
		storageType: api.BackupStorageTypeABS,
		source: func(key string) api.BackupSource {
			return api.BackupSource{ABS: &api.ABSBackupSource{Path: "container/" + key, ABSSecret: "credentials", Endpoint: azure.Service}}
		},
		secret: map[string][]byte{"storage-account": []byte(azure.Account), "storage-key": []byte(azure.Key)},
	}
}

func oss(t *testing.T) place {
	alibaba := stores.OSS(t, stores.Options{}, "bucket")
	return place{
		storageType: api.BackupStorageTypeOSS,
		source: func(key string) api.BackupSource {
			return api.BackupSource{OSS: &api.OSSBackupSource{Path: "bucket/" + key, OSSSecret: "credentials", Endpoint: alibaba.Endpoint}}
		},
		secret: map[string][]byte{"accessKeyID": []byte(alibaba.AccessKeyID), "accessKeySecret": []byte(alibaba.AccessKeySecret)},
	}
}

func volume(t *testing.T) place {
	return place{
		storageType: api.BackupStorageTypeVolume,
		source: func(key string) api.BackupSource {
			return api.BackupSource{Volume: &api.VolumeBackupSource{Path: key}}
		},
		volumeDir: t.TempDir(),
	}
}

// operator is what backups share: a fake API server, and everything else real.
type operator struct {
	backup.Config
	etcd *versionedfake.Clientset
	at   place
}

func newOperator(t *testing.T, at place) *operator {
	t.Helper()
	metrics, err := backup.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	etcd := versionedfake.NewSimpleClientset()
	return &operator{at: at, etcd: etcd, Config: backup.Config{
		Kube: fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "credentials"}, Data: at.secret}),
		Etcd: etcd, VolumeDir: at.volumeDir, Slots: backup.NewSlots(false), Metrics: metrics,
		Recorder: &record.FakeRecorder{}, Logger: logrus.NewEntry(logger), Clock: clock.RealClock{},
	}}
}

// make takes one backup, as an operator does that sees the object for the first time, and
// returns its status. An attempt may fail on a busy machine, where members or stores are slow.
func (o *operator) make(ctx context.Context, name string, endpoints []string) (api.BackupStatus, error) {
	obj := &api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid of " + name), Generation: 1, CreationTimestamp: metav1.Now()},
		Spec:       api.BackupSpec{EtcdEndpoints: endpoints, StorageType: o.at.storageType, BackupSource: o.at.source(name)},
	}
	backups := o.etcd.EtcdV1beta2().EtcdBackups("ns")
	obj, err := backups.Create(ctx, obj, metav1.CreateOptions{})
	if err != nil {
		return api.BackupStatus{}, err
	}
	b, err := backup.New(o.Config, obj)
	if err != nil {
		return api.BackupStatus{}, err
	}
	running, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { b.Run(running) })
	defer ended.Wait()
	defer stop()
	for {
		obj, err := backups.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return api.BackupStatus{}, err
		case obj.Status.Succeeded:
			return obj.Status, nil
		case obj.Status.Phase == api.BackupPhaseFailed || obj.Status.Phase == api.BackupPhaseInvalid:
			return obj.Status, fmt.Errorf("backup %s: %s", name, obj.Status.Reason)
		}
		select {
		case <-ctx.Done():
			return obj.Status, fmt.Errorf("backup %s: %w; status %+v", name, ctx.Err(), obj.Status)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// A backup from each store restores to the data that etcd held, on each etcd.
func TestBackupsInEveryStoreRestore(t *testing.T) {
	places := map[string]func(*testing.T) place{"S3": s3, "GCS": gcs, "ABS": abs, "OSS": oss, "Volume": volume}
	restored := map[string]bool{}
	for _, r := range members.Releases(t) {
		source := r.Start(t, members.Options{})
		client := source.Client(t)
		fill(t, client, 24)
		for name, open := range places {
			if name != "S3" && r.Minor() != "3.6" {
				continue // etcd sends the same to all stores
			}
			t.Run(r.Version+" to "+name, func(t *testing.T) {
				o := newOperator(t, open(t))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				status, err := o.make(ctx, "etcd.backup", []string{source.Members[0].URL})
				if err != nil {
					t.Fatal(err)
				}
				backup, path := o.bringBack(ctx, t, "etcd.backup")
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256(content)
				if got := hex.EncodeToString(sum[:]); got != status.SHA256 || int64(len(content)) != status.Size {
					t.Errorf("stored are %d bytes with SHA-256 %s, the status says %d and %s", len(content), got, status.Size, status.SHA256)
				}
				if backup.SHA256 != status.SHA256 || backup.EtcdVersion != r.Version || backup.EtcdRevision != status.EtcdRevision || backup.Uncertain || backup.Taken.IsZero() {
					t.Errorf("selected was %+v, the status says %+v", backup, status)
				}
				revision := r.SnapshotStatus(t, path).Revision
				if revision != status.EtcdRevision || status.EtcdVersion != r.Version {
					t.Errorf("stored is revision %d of etcd %s, the status says %d and %s", revision, r.Version, status.EtcdRevision, status.EtcdVersion)
				}
				members.Same(t, r.Restore(t, path), client, revision)
				restored[name] = true
			})
		}
	}
	if len(restored) != len(places) {
		t.Errorf("only from %v a backup was restored", slices.Sorted(maps.Keys(restored)))
	}
}

// fill writes keys of mixed sizes of so many MiB in all.
func fill(t *testing.T, client *clientv3.Client, mib int) {
	t.Helper()
	for i, written := 0, 0; written < mib<<20; i++ {
		value := make([]byte, []int{10, 300, 4000, 100_000, 900_000}[i%5])
		_, _ = rand.Read(value)
		if _, err := client.Put(t.Context(), fmt.Sprintf("filled-%d", i), string(value)); err != nil {
			t.Fatal(err)
		}
		written += len(value)
	}
}

// A hundred backups leave no goroutine and no file descriptor behind.
func TestAHundredBackupsLeaveNothingBehind(t *testing.T) {
	source := members.ReleaseOf(t, "3.6").Start(t, members.Options{})
	o := newOperator(t, s3(t))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	backUp := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := o.make(ctx, fmt.Sprint("backup-", i), []string{source.Members[0].URL}); err != nil {
				t.Fatal(err)
			}
		}
	}
	backUp(0, 20) // some things are allocated once
	before := usageOf(t)
	backUp(20, 120)
	after := usageOf(t)
	// Goroutines may take a moment to end.
	for deadline := time.Now().Add(20 * time.Second); after.exceeds(before) && time.Now().Before(deadline); after = usageOf(t) {
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("after 20 backups: %+v, after 120: %+v", before, after)
	if after.exceeds(before) {
		t.Errorf("after 20 backups there were %+v, after 120 there are %+v", before, after)
	}
}

// usage is the resources that a leak would use up.
type usage struct{ goroutines, files int }

func (u usage) exceeds(before usage) bool {
	return u.goroutines > before.goroutines || u.files > before.files
}

func usageOf(t *testing.T) usage {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return usage{runtime.NumGoroutine(), len(files)}
}
