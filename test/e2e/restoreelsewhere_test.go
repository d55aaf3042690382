//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// storage is a backup's place, as both kinds of specs name it.
type storage struct {
	kind   v1beta2.BackupStorageType
	source v1beta2.BackupSource
}

// everyStore starts a store of each kind beside the cluster, with its Secret.
func everyStore(t *testing.T, r *restores) map[string]storage {
	t.Helper()
	ip := stores.Options{IP: r.HostIP(t)}
	google := stores.FakeGCS(t, ip)
	google.CreateBucket(t, bucket)
	r.SetSecret("google", map[string][]byte{"credentials.json": stores.GoogleServiceAccount(t, ip)})
	azure := stores.Azurite(t, ip)
	azure.CreateContainer(t, bucket)
	r.SetSecret("azure", map[string][]byte{"storage-account": []byte(azure.Account), "storage-key": []byte(azure.Key)})
	alibaba := stores.OSS(t, ip, bucket)
	r.SetSecret("alibaba", map[string][]byte{"accessKeyID": []byte(alibaba.AccessKeyID), "accessKeySecret": []byte(alibaba.AccessKeySecret)})
	const key = bucket + "/etcd.backup"
	return map[string]storage{
		"S3":     {v1beta2.BackupStorageTypeS3, r.source("etcd.backup")},
		"GCS":    {v1beta2.BackupStorageTypeGCS, v1beta2.BackupSource{GCS: &v1beta2.GCSBackupSource{Path: key, GCPSecret: "google", Endpoint: google.Endpoint}}},
		"ABS":    {v1beta2.BackupStorageTypeABS, v1beta2.BackupSource{ABS: &v1beta2.ABSBackupSource{Path: key, ABSSecret: "azure", Endpoint: azure.Service}}},
		"OSS":    {v1beta2.BackupStorageTypeOSS, v1beta2.BackupSource{OSS: &v1beta2.OSSBackupSource{Path: key, OSSSecret: "alibaba", Endpoint: alibaba.Endpoint}}},
		"Volume": {v1beta2.BackupStorageTypeVolume, v1beta2.BackupSource{Volume: &v1beta2.VolumeBackupSource{Path: "etcd.backup"}}},
	}
}

// One operator restores backups of each minor version from each store, all at the same time,
// beside their running sources: into the same minor and into the next.
func TestRestoresBesideTheSourceFromEveryStore(t *testing.T) {
	t.Parallel()
	r := withoutRestoreOperator(t)
	n := r.Namespace
	n.Shell("kubectl apply -f example/etcd-backup-operator/volume.yaml -f example/etcd-restore-operator/volume.yaml")
	places := everyStore(t, r)

	sources := map[string]*harness.Cluster{}
	members := map[string][]harness.Member{}
	for _, version := range []string{etcd35, etcd36, etcd37} {
		sources[version] = n.CreateObject(object("from-"+version[:1]+version[2:3], 1, version))
	}
	for version, source := range sources {
		members[version] = source.WaitSettled()
		source.Put("kept", "yes")
	}
	n.WaitBackupOperator()
	n.WaitRestoreOperator()
	table := []struct{ from, to, store string }{
		{etcd35, etcd35, "GCS"},
		{etcd35, etcd36, "ABS"},
		{etcd36, etcd36, "OSS"},
		{etcd36, etcd37, "Volume"},
		{etcd37, etcd37, "S3"},
	}
	for _, c := range table {
		at := places[c.store]
		n.CreateBackup("to-"+strings.ToLower(c.store), v1beta2.BackupSpec{
			EtcdCluster: &v1beta2.EtcdClusterRef{Name: sources[c.from].Name}, StorageType: at.kind, BackupSource: at.source,
		})
	}
	for _, c := range table {
		n.AdoptBackup("to-" + strings.ToLower(c.store)).WaitSucceeded(time.Time{})
	}
	for _, source := range sources {
		source.Put("later", "yes")
	}
	restored := map[string]*harness.Restore{}
	for _, c := range table {
		at := places[c.store]
		restored[c.store] = n.CreateRestore(v1beta2.RestoreSpec{
			EtcdCluster: v1beta2.EtcdClusterRef{Name: strings.ToLower(c.store)}, BackupStorageType: at.kind, BackupSource: at.source,
			ClusterTemplate: template(t, v1beta2.ClusterSpec{Size: 1, Version: c.to, Pod: &v1beta2.PodPolicy{Tmpfs: c.store == "GCS"}}),
		})
	}
	for _, c := range table {
		obj := restored[c.store].WaitSucceeded()
		copied, _ := r.checkRestored(strings.ToLower(c.store), obj)
		checkStrange(t, copied.WaitSettled(), copied.Pods(), members[c.from][0])
		if got := obj.Status.Backup; got.EtcdVersion != c.from || obj.Status.ReplacedUID != "" {
			t.Errorf("from %s: the backup is of etcd %s, replaced was %q; want %s and nothing", c.store, got.EtcdVersion, obj.Status.ReplacedUID, c.from)
		}
	}
	for version, source := range sources {
		sameMembers(t, members[version], source.WaitSettled())
		if got := source.Get("later") + source.Get("again"); got != "yes" {
			t.Errorf("the source %s was touched: %q", source.Name, got)
		}
	}
	n.CheckNoSecretIsTold()
}

// An operator for all namespaces runs the restores with the annotation, in two namespaces at
// once, and leaves the others alone.
func TestRestoresClusterWide(t *testing.T) {
	t.Parallel()
	wide := harness.NewNamespace(t)
	a, b := newRestores(t), newRestores(t)
	wide.DeployRestoreOperator(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Command = append(d.Spec.Template.Spec.Containers[0].Command, "-cluster-wide")
	})
	var running []*harness.Restore
	for _, r := range []*restores{a, b} {
		cluster := r.Create(1, etcd36)
		r.backedUp(cluster, "etcd.backup")
		// The namespace's own operator stops, so that the test sees what the other one takes.
		r.ShellWithin(2*time.Minute, "kubectl delete deployment etcd-restore-operator && kubectl wait --for=delete pod -l name=etcd-restore-operator --timeout=100s")
	}
	for _, r := range []*restores{a, b} {
		restore := r.CreateRestoreObject(&v1beta2.EtcdRestore{
			ObjectMeta: metav1.ObjectMeta{Name: "etcd", Annotations: map[string]string{scopeAnnotation: "clusterwide"}}, Spec: r.spec("etcd", "etcd.backup"),
		})
		running = append(running, restore)
	}
	spec := a.spec("theirs", "etcd.backup")
	spec.ClusterTemplate = template(t, v1beta2.ClusterSpec{Size: 1})
	theirs := a.CreateRestore(spec)
	for i, r := range []*restores{a, b} {
		r.checkRestored("etcd", running[i].WaitSucceeded())
	}
	if s := theirs.Get().Status; s.Phase != v1beta2.RestorePhaseNone {
		t.Errorf("the operator for all namespaces took what was not annotated: %+v", s)
	}
	a.DeployRestoreOperator(nil)
	a.checkRestored("theirs", theirs.WaitSucceeded())
	if fmt.Sprint(a.minio.Endpoint) == fmt.Sprint(b.minio.Endpoint) {
		t.Error("both backups came from one store")
	}
}
