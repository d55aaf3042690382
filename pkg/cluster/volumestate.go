// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// volumeState is what matters of one PersistentVolumeClaim of the cluster. It has
// the name of its member and of the pod that mounts it.
type volumeState struct {
	name string
	uid  types.UID
	// version of etcd that ran on the data last; "" where that is not on record.
	version string
	// template is the template.volume that it was made by.
	template string
	size     resource.Quantity // as asked for
	deleting bool
	// putOff is true for a while after the volume was changed: the cache may not
	// show it yet, and somebody else may change it back.
	putOff bool
	// refusedSize says why the size of the spec could not be asked for.
	refusedSize string
}

func volumeStateOf(claim *corev1.PersistentVolumeClaim) volumeState {
	return volumeState{
		name:     claim.Name,
		uid:      claim.UID,
		version:  claim.Annotations[versionAnnotation],
		template: claim.Annotations[volumeTemplateAnnotation],
		size:     claim.Spec.Resources.Requests[corev1.ResourceStorage],
		deleting: claim.DeletionTimestamp != nil,
	}
}

func (o *observation) volume(name string) *volumeState {
	for i := range o.volumes {
		if o.volumes[i].name == name {
			return &o.volumes[i]
		}
	}
	return nil
}

// keepsData tells whether the member's data outlives its pod. A learner that has
// never started has none.
func (m memberState) keepsData() bool {
	return m.volume != nil && !m.volume.deleting && (!m.Learner || m.joined())
}
