// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const operatorImage = "etcd-operator/etcd-operator:v1.0.0"

func clusterWith(version string, pod *api.PodPolicy) *api.EtcdCluster {
	obj := testCluster()
	obj.Spec.Version, obj.Spec.Pod = version, pod
	return obj
}

func claimOf(size string) *corev1.PersistentVolumeClaimSpec {
	return &corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To("fast"),
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

func testSource() *api.SeedBackup {
	return &api.SeedBackup{
		Restore: "c", RestoreUID: "33333333-3333-3333-3333-333333333333",
		URL: "http://etcd-restore-operator.operators.svc:19999/v1/backup/c", Secret: "c-restore-token",
		Size: 100 << 20, SHA256: strings.Repeat("ab", 32), BumpRevision: 1000, Key: "backups/etcd.backup", EtcdVersion: "3.6.16", EtcdRevision: 42,
	}
}
