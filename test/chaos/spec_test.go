//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// versions are those that each cluster goes through, in order.
var versions = []string{"3.5.35", "3.6.16", "3.7.3"}

var specFaults = []fault{
	{name: "resize", fits: resizes, strike: func(_ *storm, c *target, _ *corev1.Pod) {
		c.size = 8 - c.size // 3 and 5
		c.Resize(c.size)
	}},
	{name: "upgrade", fits: func(c *target) bool { return c.version < len(versions)-1 }, strike: func(s *storm, c *target, _ *corev1.Pod) { s.upgrade(c) }},
}

// upgrade asks for the next version, if there is one. A minor version must not be
// skipped, so the last upgrade has to be over.
func (s *storm) upgrade(c *target) {
	if c.version == len(versions)-1 || c.Status().CurrentVersion != versions[c.version] {
		return
	}
	c.version++
	c.SetVersion(versions[c.version])
}

// spec is a cluster of the first version.
func spec(name string, size int, volumes bool) *v1beta2.EtcdCluster {
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta2.ClusterSpec{
		Size: size, Version: versions[0],
		Pod: &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: strconv.Itoa(databaseQuota)}}},
	}}
	if volumes {
		cluster.Spec.Pod.PersistentVolumeClaimSpec = &corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("400Mi")}},
		}
	}
	return cluster
}
