//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/monitoring"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// bucket is the bucket of each test, on a MinIO of its own.
const bucket = "mybucket"

// backups is a namespace with a cluster, both operators, and a MinIO beside them.
type backups struct {
	*harness.Namespace
	t       *testing.T
	minio   *stores.MinIOServer
	cluster *harness.Cluster
}

// newBackups deploys everything except the Secret. cluster creates the cluster; nil: one of
// three members in plain text.
func newBackups(t *testing.T, cluster func(*harness.Namespace) *harness.Cluster) *backups {
	t.Helper()
	n := harness.New(t)
	b := &backups{Namespace: n, t: t, minio: stores.MinIO(t, stores.Options{IP: n.HostIP(t)})}
	b.minio.CreateBucket(t, bucket)
	n.DeployBackupOperator(nil)
	if cluster == nil {
		cluster = func(n *harness.Namespace) *harness.Cluster { return n.Create(3, "") }
	}
	b.cluster = cluster(n)
	b.cluster.WaitSettled()
	return b
}

// credentials are the files of the AWS command line.
func (b *backups) credentials(key string) map[string][]byte {
	return map[string][]byte{
		"credentials": fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", b.minio.AccessKey, key),
		"config":      fmt.Appendf(nil, "[default]\nregion = %s\n", b.minio.Region),
	}
}

// setCredentials creates or edits the Secret aws.
func (b *backups) setCredentials(key string) { b.SetSecret("aws", b.credentials(key)) }

// awsDirectory holds the credentials, and the endpoint, which the manifests leave out.
func (b *backups) awsDirectory() string {
	b.t.Helper()
	dir := b.t.TempDir()
	for name, content := range b.credentials(b.minio.SecretKey) {
		if name == "config" {
			content = fmt.Appendf(content, "endpoint_url = %s\n", b.minio.Endpoint)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	return dir
}

// spec is a one-off backup of the cluster.
func (b *backups) spec(key string) v1beta2.BackupSpec {
	return v1beta2.BackupSpec{
		EtcdCluster:  &v1beta2.EtcdClusterRef{Name: b.cluster.Name},
		StorageType:  v1beta2.BackupStorageTypeS3,
		BackupSource: b.source(key),
	}
}

// source is a key in the bucket, for a spec.
func (b *backups) source(key string) v1beta2.BackupSource {
	return v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{
		Path: bucket + "/" + key, AWSSecret: "aws", Endpoint: b.minio.Endpoint, ForcePathStyle: true,
	}}
}

// keys returns the keys of all objects in the bucket.
func (b *backups) keys() []string {
	b.t.Helper()
	keys, err := b.tryKeys(b.t.Context())
	if err != nil {
		b.t.Fatalf("list the bucket: %v", err)
	}
	return keys
}

func (b *backups) tryKeys(ctx context.Context) ([]string, error) {
	var keys []string
	name := bucket
	pages := s3.NewListObjectsV2Paginator(b.minio.Client(), &s3.ListObjectsV2Input{Bucket: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			keys = append(keys, *object.Key)
		}
	}
	return keys, nil
}

// object reads a stored object with its metadata.
func (b *backups) object(key string) ([]byte, map[string]string) {
	b.t.Helper()
	name := bucket
	object, err := b.minio.Client().GetObject(b.t.Context(), &s3.GetObjectInput{Bucket: &name, Key: &key})
	if err != nil {
		b.t.Fatalf("get %s: %v", key, err)
	}
	defer object.Body.Close()
	content, err := io.ReadAll(object.Body)
	if err != nil {
		b.t.Fatalf("get %s: %v", key, err)
	}
	return content, object.Metadata
}

// checkStored compares the status with the stored object, and restores the object with
// etcdutl.
func (b *backups) checkStored(obj *v1beta2.EtcdBackup) {
	b.t.Helper()
	s := obj.Status
	key, inBucket := strings.CutPrefix(s.Key, bucket+"/")
	if !inBucket {
		b.t.Fatalf("status.key is %q", s.Key)
	}
	content, metadata := b.object(key)
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != s.SHA256 || metadata["sha256"] != "" && metadata["sha256"] != got {
		b.t.Errorf("the object's SHA-256 is %s, the status says %s, its metadata %s", got, s.SHA256, metadata["sha256"])
	}
	if int64(len(content)) != s.Size {
		b.t.Errorf("the object has %d bytes, the status says %d", len(content), s.Size)
	}
	if got := metadata["etcd-revision"]; got != fmt.Sprint(s.EtcdRevision) || s.EtcdRevision == 0 {
		b.t.Errorf("metadata say revision %q, the status says %d", got, s.EtcdRevision)
	}
	if s.EtcdVersion == "" || s.Endpoint == "" || s.Duration == nil || s.Reason != "" {
		b.t.Errorf("status %+v", s)
	}
	dir := b.t.TempDir()
	file := filepath.Join(dir, "snapshot.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.Shell("etcdutl snapshot restore " + file + " --data-dir " + dir + "/restored")
}

// waitReason waits until the status reports a failure in these words.
func waitReason(backup *harness.Backup, words ...string) *v1beta2.EtcdBackup {
	return backup.Wait("failed with a reason", harness.Backed, func(obj *v1beta2.EtcdBackup) error {
		for _, word := range words {
			if obj.Status.Succeeded || !strings.Contains(obj.Status.Reason, word) {
				return fmt.Errorf("its reason lacks %q", word)
			}
		}
		return nil
	})
}

// snapshots returns the keys that a schedule has made, by time.
func (b *backups) snapshots(path string) []string {
	b.t.Helper()
	keys := slices.DeleteFunc(b.keys(), func(key string) bool { return !strings.HasPrefix(key, path+"_v") })
	slices.SortFunc(keys, func(x, y string) int { return strings.Compare(timeOf(x), timeOf(y)) })
	return keys
}

// timeOf returns the time in the name of a scheduled backup.
func timeOf(key string) string { return key[strings.LastIndex(key, "_")+1:] }

// A schedule takes more than twenty backups, keeps the newest four, and touches nothing else.
// Meanwhile clients write, and the operator is killed.
func TestPeriodicBackupsAndTheirRetention(t *testing.T) {
	t.Parallel()
	b := newBackups(t, nil)
	b.setCredentials(b.minio.SecretKey)
	// These belong to somebody else, who chose a name that begins like ours.
	others := []string{"etcd2_v1_2020-01-01-00:00:00", "etcd_v1_2020-01-01-00:00:00", "etcd_v1_2020-01-01-00:00:00.bak", "etcd"}
	name := bucket
	for _, key := range others {
		_, err := b.minio.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &name, Key: &key, Body: strings.NewReader("theirs")})
		if err != nil {
			t.Fatal(err)
		}
	}
	spec := b.spec("etcd")
	spec.BackupPolicy = &v1beta2.BackupPolicy{BackupIntervalInSecond: 3, MaxBackups: 4}
	backup := b.CreateBackup("periodic", spec)
	last := ""
	for made := range 21 {
		b.cluster.Put("key", fmt.Sprint(made))
		last = backup.Wait("another one", harness.Backed, func(obj *v1beta2.EtcdBackup) error {
			if obj.Status.Key == last || !obj.Status.Succeeded {
				return fmt.Errorf("%s is the newest yet: %s", obj.Status.Key, obj.Status.Reason)
			}
			return nil
		}).Status.Key
		if made == 7 {
			b.CrashBackupOperator()
		}
	}
	b.checkMetrics()
	backup.Edit(func(s *v1beta2.BackupSpec) { s.BackupPolicy.Suspend = true })
	obj := backup.Wait("suspended", harness.Backed, func(obj *v1beta2.EtcdBackup) error {
		if obj.Status.Phase != v1beta2.BackupPhaseSuspended {
			return errors.New("it continues")
		}
		return nil
	})
	ours := func() []string {
		return slices.DeleteFunc(b.snapshots("etcd"), func(key string) bool { return slices.Contains(others, key) })
	}
	kept := ours()
	// A suspended EtcdBackup deletes nothing, so it may not have come to the deletion after its last backup.
	if len(kept) != 4 && len(kept) != 5 || int(obj.Status.Backups) != len(kept) {
		t.Errorf("%d backups are kept, the status says %d: %v", len(kept), obj.Status.Backups, kept)
	}
	if newest := bucket + "/" + kept[len(kept)-1]; newest != obj.Status.Key {
		t.Errorf("the newest object is %s, the status says %s", newest, obj.Status.Key)
	}
	for i := 1; i < len(kept); i++ {
		if timeOf(kept[i]) == timeOf(kept[i-1]) {
			t.Errorf("two backups were made for one time: %v", kept)
		}
	}
	for _, key := range others {
		if !slices.Contains(b.keys(), key) {
			t.Errorf("%s, which is not ours, was deleted", key)
		}
	}
	b.checkStored(obj)
	if !slices.Contains(obj.Finalizers, v1beta2.BackupPeriodicFinalizer) {
		t.Errorf("finalizers %v", obj.Finalizers)
	}
	backup.Delete()
	backup.WaitGone()
	if got := ours(); !slices.Equal(got, kept) {
		t.Errorf("with the object, the backups %v became %v", kept, got)
	}
	b.CheckNoSecretIsTold()
}

// checkMetrics checks the backup operator's metrics for the alerts and the dashboard, while
// there is a schedule.
func (b *backups) checkMetrics() {
	b.t.Helper()
	checkSeries(b.t, "etcd_backup_operator_", []string{restoreTestSeries, logSeries}, b.FromBackupOperator)
}

// These begin the names of those series that only a backup with a restoreTest has, or one with
// continuous.
const (
	restoreTestSeries = "etcd_backup_operator_restore_test_"
	logSeries         = "etcd_backup_operator_log_"
)

// checkSeries fails the test unless an operator's metrics have every series with this prefix
// that the alerts and the dashboard use. It leaves out those with one of the other prefixes.
func checkSeries(t *testing.T, prefix string, but []string, from func(context.Context, string) (int, string, error)) {
	t.Helper()
	var page string
	harness.Wait(t, "metrics of the operator", harness.Settle, func(ctx context.Context) error {
		status, text, err := from(ctx, "/metrics")
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d", status)
		}
		page = text
		return err
	})
	queries, err := monitoring.Queries("../..")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, q := range queries {
		for _, name := range q.Metrics() {
			if !strings.HasPrefix(name, prefix) || slices.ContainsFunc(but, func(other string) bool { return strings.HasPrefix(name, other) }) {
				continue
			}
			if asked++; !hasMetric(page, name) {
				t.Errorf("%s: the operator has no metric %s", q.Name, name)
			}
		}
	}
	if asked == 0 {
		t.Errorf("nothing asks for a metric %s", prefix)
	}
}

// A cluster with TLS is backed up by its name and by its endpoints, with either form of the
// client's Secret.
func TestBackupOfAClusterWithTLS(t *testing.T) {
	t.Parallel()
	b := newBackups(t, func(n *harness.Namespace) *harness.Cluster {
		n.Shell("example/tls/generate.sh --dir=" + t.TempDir())
		n.Shell("kubectl apply -f example/tls/example-tls-cluster.yaml")
		return n.Adopt("example")
	})
	b.setCredentials(b.minio.SecretKey)
	b.checkStored(b.CreateBackup("by-name", b.spec("by-name")).WaitSucceeded(time.Time{}))

	spec := b.spec("by-endpoints")
	spec.EtcdCluster, spec.EtcdEndpoints = nil, []string{"https://example-client:2379"}
	spec.ClientTLSSecret = b.cluster.Object().Spec.OperatorSecret()
	b.checkStored(b.CreateBackup("by-endpoints", spec).WaitSucceeded(time.Time{}))

	spec.S3.Path, spec.ClientTLSSecret = bucket+"/without", ""
	refused := b.CreateBackup("without-certificate", spec)
	waitReason(refused, "clientTLSSecret")
	refused.Edit(func(s *v1beta2.BackupSpec) { s.ClientTLSSecret = b.cluster.Object().Spec.OperatorSecret() })
	refused.WaitSucceeded(time.Time{})
	b.CheckNoSecretIsTold()
}

// The backup operator's own Role is enough.
func TestBackupsByAnAccountOfTheirOwn(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	n.Shell("kubectl apply --server-side --force-conflicts -k deploy/crds")
	n.Shell("kubectl apply -f example/rbac/backup-operator.yaml")
	n.DeployBackupOperator(func(d *appsv1.Deployment) {
		pod := &d.Spec.Template.Spec
		pod.ServiceAccountName = "etcd-backup-operator"
		pod.Containers[0].Command = append(pod.Containers[0].Command, "-create-crd=false")
	})
	b := &backups{Namespace: n, t: t, minio: stores.MinIO(t, stores.Options{IP: n.HostIP(t)}), cluster: n.Create(1, "")}
	b.minio.CreateBucket(t, bucket)
	b.setCredentials(b.minio.SecretKey)
	b.cluster.WaitSettled()
	spec := b.spec("etcd")
	spec.BackupPolicy = &v1beta2.BackupPolicy{Schedule: "@every 2s", MaxBackups: 1}
	backup := b.CreateBackup("own-account", spec)
	first := backup.WaitSucceeded(time.Time{}).Status.Key
	backup.Wait("another one, and the first deleted", harness.Backed, func(obj *v1beta2.EtcdBackup) error {
		keys, err := b.tryKeys(t.Context())
		if err != nil {
			return err
		}
		if obj.Status.Key == first || slices.Contains(keys, strings.TrimPrefix(first, bucket+"/")) {
			return fmt.Errorf("the bucket holds %v", keys)
		}
		return nil
	})
	backup.Delete()
	backup.WaitGone()
}
