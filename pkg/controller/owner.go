// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
)

// ownerOf returns the EtcdCluster that controls an object, or nil.
func ownerOf(obj metav1.Object) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(obj)
	if ref == nil || ref.Kind != api.EtcdClusterResourceKind {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != api.GroupName {
		return nil
	}
	return ref
}

// wakeOwner makes handlers that start a pass of the cluster that an object belongs
// to when the object comes, changes or goes.
func wakeOwner(f *fleet.Fleet[*api.EtcdCluster]) cache.ResourceEventHandler {
	wake := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if o, ok := obj.(metav1.Object); ok {
			wakeOwnerOf(f, o)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: wake,
		UpdateFunc: func(before, after any) {
			b, okB := before.(metav1.Object)
			a, okA := after.(metav1.Object)
			if okB && okA && b.GetResourceVersion() == a.GetResourceVersion() {
				return // the informer listed again, nothing changed
			}
			wake(after)
		},
		DeleteFunc: wake,
	}
}

func wakeOwnerOf(f *fleet.Fleet[*api.EtcdCluster], obj metav1.Object) {
	if owner := ownerOf(obj); owner != nil && f.WakeUID(owner.UID) {
		return
	}
	// What lost its owner, or never had one, may be in the cluster's way.
	if name := obj.GetLabels()[api.ClusterLabel]; name != "" {
		f.WakeKey(types.NamespacedName{Namespace: obj.GetNamespace(), Name: name})
	}
}
