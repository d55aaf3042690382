// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// etcdClusters is the resource that the controller watches.
var etcdClusters = api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural)

// unreadable stands in the informer's store for an EtcdCluster that is not of the
// types' form.
type unreadable struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	err    error
	reason string // status.reason, as it is
}

// DeepCopyObject makes it an object that events can be about.
func (u *unreadable) DeepCopyObject() runtime.Object {
	return &unreadable{u.TypeMeta, *u.ObjectMeta.DeepCopy(), u.err, u.reason}
}

// listWatch lists and watches EtcdClusters without decoding them. A typed client
// fails on a whole list if one object in it has, say, a text for its size; such
// objects exist where a CRD without a schema, like that of v0.9.4, was in use.
// missing is called when the API server does not know the resource; it must not
// block.
func listWatch(client dynamic.Interface, namespace string, missing func()) cache.ListerWatcher {
	told := func(err error) error {
		if apierrors.IsNotFound(err) {
			missing()
		}
		return err
	}
	resource := client.Resource(etcdClusters).Namespace(namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, options)
			return list, told(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, options)
			return w, told(err)
		},
	}, client)
}

// watched is an example of the objects that listWatch delivers.
func watched() runtime.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(api.SchemeGroupVersion.WithKind(api.EtcdClusterResourceKind))
	return u
}

// decode is the informer's transformation: what is stored and handed on is an
// *EtcdCluster or an *unreadable. It never fails, as that would drop the object.
func decode(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok { // a cache.DeletedFinalStateUnknown, or decoded before
		return obj, nil
	}
	u.SetManagedFields(nil)
	cluster := &api.EtcdCluster{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cluster)
	if err == nil {
		return cluster, nil
	}
	reason, _, _ := unstructured.NestedString(u.Object, "status", "reason") // nor need the status be readable
	return &unreadable{
		reason:   reason,
		TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), Annotations: u.GetAnnotations(),
		},
		err: fmt.Errorf("EtcdCluster %s/%s is not of the form that the operator knows: %w", u.GetNamespace(), u.GetName(), whichField(u, err)),
	}, nil
}

// whichField replaces an error of the converter, which does not say where it met
// what it can't convert, by that of package json, which does.
func whichField(u *unstructured.Unstructured, err error) error {
	text, errText := u.MarshalJSON()
	if errText != nil {
		return err
	}
	if errField := json.Unmarshal(text, &api.EtcdCluster{}); errField != nil {
		return errField
	}
	return err
}

// uidIndex finds EtcdClusters in the informer's store by their UID.
const uidIndex = "uid"

func indexByUID(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	return []string{string(o.GetUID())}, nil
}

func keyOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
