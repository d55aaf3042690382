// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	backupApp = "etcd-backup-operator"
	// Backed bounds the duration of a small backup, including the operator's start on a slow
	// machine.
	Backed = 90 * time.Second
)

// DeployBackupOperator deploys the backup operator from example/ after edit, and waits until
// it leads and the CRD is established.
func (n *Namespace) DeployBackupOperator(edit func(*appsv1.Deployment)) {
	n.t.Helper()
	n.grant()
	n.deploy("example/etcd-backup-operator/deployment.yaml", func(d *appsv1.Deployment) {
		if edit != nil {
			edit(d)
		}
	})
	n.WaitBackupOperator()
}

// WaitBackupOperator waits until a backup operator is ready and the CRD is
// established.
func (n *Namespace) WaitBackupOperator() {
	n.t.Helper()
	n.waitProgram(backupApp, v1beta2.EtcdBackupCRDName)
}

// BackupOperators returns all pods of the backup operator, by name.
func (n *Namespace) BackupOperators() []*corev1.Pod { return n.podsOf(backupApp) }

// FromBackupOperator gets a page of the backup operator's HTTP server.
func (n *Namespace) FromBackupOperator(ctx context.Context, path string) (status int, body string, err error) {
	return fromProgram(ctx, ready(n.BackupOperators()), path)
}

// Backup is an EtcdBackup of a test.
type Backup struct{ handle[*v1beta2.EtcdBackup] }

// CreateBackup creates an EtcdBackup.
func (n *Namespace) CreateBackup(name string, spec v1beta2.BackupSpec) *Backup {
	n.t.Helper()
	_, err := n.EtcdClusters.EtcdV1beta2().EtcdBackups(n.Name).Create(n.t.Context(), &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatalf("create EtcdBackup %s: %v", name, err)
	}
	return n.AdoptBackup(name)
}

// AdoptBackup returns a handle of an EtcdBackup that somebody else has created.
func (n *Namespace) AdoptBackup(name string) *Backup {
	return &Backup{handle[*v1beta2.EtcdBackup]{
		Name: name, n: n, t: n.t, kind: v1beta2.EtcdBackupResourceKind, objects: n.EtcdClusters.EtcdV1beta2().EtcdBackups(n.Name),
		status: func(obj *v1beta2.EtcdBackup) string { return fmt.Sprintf("status %+v", obj.Status) },
	}}
}

// WaitSucceeded waits until the status reports a success of the current spec after a time.
func (b *Backup) WaitSucceeded(after time.Time) *v1beta2.EtcdBackup {
	b.t.Helper()
	return b.Wait("succeeded", Backed, func(obj *v1beta2.EtcdBackup) error {
		s := obj.Status
		// Times in the status have whole seconds.
		if !s.Succeeded || s.ObservedGeneration != obj.Generation || s.LastSuccessDate == nil || s.LastSuccessDate.Time.Before(after.Truncate(time.Second)) {
			return fmt.Errorf("no success yet: %s", s.Reason)
		}
		return nil
	})
}

// Edit changes the spec.
func (b *Backup) Edit(edit func(*v1beta2.BackupSpec)) {
	b.t.Helper()
	b.edit(func(obj *v1beta2.EtcdBackup) { edit(&obj.Spec) })
}
