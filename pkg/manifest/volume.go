// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	dataVolume    = "etcd-data"
	dataMountPath = "/var/etcd"
	dataDir       = dataMountPath + "/data"
)

// dataVolumeOf returns the volume of a member's data: the claim of the member's name, or an
// emptyDir, which is lost with its pod.
func dataVolumeOf(policy *api.PodPolicy, p MemberPod) corev1.Volume {
	v := corev1.Volume{Name: dataVolume}
	switch {
	case p.Volume:
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name}
	case policy.Tmpfs:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	default:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return v
}

// inMemory reports whether a member loses its data when its node restarts, although its pod
// stays and restarts.
func inMemory(policy *api.PodPolicy, p MemberPod) bool { return policy.Tmpfs && !p.Volume }

// startedVolumes holds the launcher, and the file that means that etcd was started in a pod
// with its data in memory. With data on a disk, both would be lost together.
func startedVolumes(obj *api.EtcdCluster, policy *api.PodPolicy, p MemberPod) []corev1.Volume {
	if !inMemory(policy, p) && !launches(obj, p) {
		return nil
	}
	return []corev1.Volume{{Name: startedVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// BuildVolume builds the claim for a member's data. It has the name and the labels of the
// member's pod. The cluster must have a persistentVolumeClaimSpec.
func BuildVolume(obj *api.EtcdCluster, member string) *corev1.PersistentVolumeClaim {
	spec := *podPolicy(obj).PersistentVolumeClaimSpec
	if len(spec.AccessModes) == 0 {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:            member,
			Namespace:       obj.Namespace,
			Labels:          memberLabels(obj, member),
			OwnerReferences: []metav1.OwnerReference{OwnerOf(obj)},
		},
		Spec: spec,
	}
}
