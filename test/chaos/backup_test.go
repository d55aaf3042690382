//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

const bucket = "chaos"

// backupSource is a client of each history that reads a backup.
const backupSource = clientsEach + 1

var backupFaults = []fault{{name: "backup and restore", calm: true, strike: func(s *storm, c *target, _ *corev1.Pod) {
	s.prepareBackups()
	s.backups++
	name := fmt.Sprintf("copy-%d", s.backups)
	source := v1beta2.BackupSource{S3: &v1beta2.S3BackupSource{Path: bucket + "/" + name, AWSSecret: "aws", Endpoint: s.store.Endpoint, ForcePathStyle: true}}

	called := time.Since(c.clients.history.start)
	backup := s.n.CreateBackup(name, v1beta2.BackupSpec{
		EtcdCluster: &v1beta2.EtcdClusterRef{Name: c.Name}, StorageType: v1beta2.BackupStorageTypeS3, BackupSource: source,
	})
	if s.rand.IntN(2) == 0 {
		s.tell("backup operator killed", "meanwhile")
		s.n.CrashBackupOperator()
	}
	harness.Wait(s.t, name+" backed up", restoredWithin, func(context.Context) error {
		if status := backup.Get().Status; !status.Succeeded {
			return errors.New(status.Reason)
		}
		return nil
	})
	returned := time.Since(c.clients.history.start)

	restore := s.n.CreateRestore(v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.EtcdClusterRef{Name: name}, BackupStorageType: v1beta2.BackupStorageTypeS3, BackupSource: source,
		ClusterTemplate: s.template(1+2*s.rand.IntN(2), versions[c.version]),
	})
	if s.rand.IntN(2) == 0 {
		s.tell("restore operator killed", "meanwhile")
		s.n.CrashRestoreOperator()
	}
	restore.WaitSucceeded()
	copied := &target{Cluster: s.n.Adopt(name)}
	now, err := s.read(copied)
	if err != nil {
		s.t.Fatalf("read the restored cluster: %v", err)
	}
	for _, key := range c.clients.history.keys() {
		c.clients.history.read(backupSource, key, now[key].value, called, returned)
	}
	copied.Delete()
	restore.Delete()
	backup.Delete()
	copied.WaitGone(harness.Settle)
}}}

// restoredWithin is how long a backup may take, with operators that are killed.
const restoredWithin = 5 * time.Minute

// prepareBackups starts a store beside the cluster, and the operators, once.
func (s *storm) prepareBackups() {
	s.t.Helper()
	if s.store != nil {
		return
	}
	s.store = stores.MinIO(s.t, stores.Options{IP: s.n.HostIP(s.t)})
	s.store.CreateBucket(s.t, bucket)
	s.n.SetSecret("aws", map[string][]byte{
		"credentials": fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", s.store.AccessKey, s.store.SecretKey),
		"config":      fmt.Appendf(nil, "[default]\nregion = %s\n", s.store.Region),
	})
	s.n.DeployBackupOperator(nil)
	s.n.DeployRestoreOperator(nil)
}

// template is a cluster for a restore to make.
func (s *storm) template(size int, version string) *v1beta2.ClusterTemplate {
	s.t.Helper()
	text, err := json.Marshal(v1beta2.ClusterSpec{Size: size, Version: version})
	if err != nil {
		s.t.Fatal(err)
	}
	return &v1beta2.ClusterTemplate{Spec: runtime.RawExtension{Raw: text}}
}
