// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeState is what matters of one PersistentVolumeClaim of the cluster. It has
// the name of its member and of the pod that mounts it.
type VolumeState struct {
	Name string
	UID  types.UID
	// Version of etcd that ran on the data last; "" where that is not on record.
	Version string
	// Template is the template.volume that it was made by.
	Template string
	Size     resource.Quantity // as asked for
	Deleting bool
	// PutOff is true for a while after the volume was changed: the cache may not
	// show it yet, and somebody else may change it back.
	PutOff bool
	// RefusedSize says why the size of the spec could not be asked for.
	RefusedSize string
}

// VolumeStateOf reads the state of a volume back.
func VolumeStateOf(claim *corev1.PersistentVolumeClaim) VolumeState {
	return VolumeState{
		Name:     claim.Name,
		UID:      claim.UID,
		Version:  claim.Annotations[VersionAnnotation],
		Template: claim.Annotations[VolumeTemplateAnnotation],
		Size:     claim.Spec.Resources.Requests[corev1.ResourceStorage],
		Deleting: claim.DeletionTimestamp != nil,
	}
}
