// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeState is the relevant state of one of the cluster's PersistentVolumeClaims. It has the
// name of its member and of the pod that mounts it.
type VolumeState struct {
	Name string
	UID  types.UID
	// Version of the last etcd on the data; "" if it is not on record.
	Version string
	// Template is the template.volume that built it.
	Template string
	Size     resource.Quantity // as asked for
	Deleting bool
	// Lost is true if its PersistentVolume is gone, or if it never had one.
	Lost bool
	// Unbound is true if it has never had a PersistentVolume: it holds no data.
	Unbound bool
	// Owner is the user whose files the data is, if that is not the usual one; zero: not on
	// record.
	Owner Owner
	// PutOff is true for a while after a change of the volume: the cache may not show it yet,
	// and somebody else may undo it.
	PutOff bool
	// RefusedSize says why the volume can't have the spec's size.
	RefusedSize string
	// Capacity is the size that it has; zero if nothing states it, as before it is bound.
	Capacity resource.Quantity
	// ResizePending is true while its file system waits to grow, on a node. ResizeProblem says why the
	// volume or the file system does not grow; "" if nothing is known of that.
	ResizePending bool
	ResizeProblem string
	// SizePutOff is true while the operator delays another attempt at that size.
	SizePutOff bool
	// DeletePutOff is true while the operator delays another attempt to delete it.
	DeletePutOff bool
}

// VolumeStateOf reads the state of a volume.
func VolumeStateOf(claim *corev1.PersistentVolumeClaim) VolumeState {
	v := VolumeState{
		Name:     claim.Name,
		UID:      claim.UID,
		Version:  claim.Annotations[VersionAnnotation],
		Template: claim.Annotations[VolumeTemplateAnnotation],
		Size:     claim.Spec.Resources.Requests[corev1.ResourceStorage],
		Capacity: claim.Status.Capacity[corev1.ResourceStorage],
		Deleting: claim.DeletionTimestamp != nil,
		Lost:     claim.Status.Phase == corev1.ClaimLost || claim.Status.Phase == corev1.ClaimPending,
		Unbound:  claim.Status.Phase == corev1.ClaimPending && claim.Spec.VolumeName == "",
		Owner:    ParseOwner(claim.Annotations[OwnerAnnotation]),
	}
	for _, c := range claim.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == corev1.PersistentVolumeClaimFileSystemResizePending:
			v.ResizePending = true
		case c.Type == corev1.PersistentVolumeClaimControllerResizeError, c.Type == corev1.PersistentVolumeClaimNodeResizeError:
			v.ResizeProblem = cmp.Or(c.Message, c.Reason, string(c.Type))
		}
	}
	return v
}
