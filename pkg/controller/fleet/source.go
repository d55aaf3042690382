// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// Source is where the objects of a Fleet come from.
type Source[T Object] struct {
	Dynamic  dynamic.Interface
	Resource schema.GroupVersionResource
	Kind     string
	// New returns an empty object.
	New func() T
	// ReasonField is the field of status that explains why an object is not followed.
	ReasonField string
	// Namespace is the one that is watched; "": all.
	Namespace string
	// ClusterWide manages the objects that are annotated so, and of them
	// alone.
	ClusterWide bool
	// AnyScope manages all objects instead, whatever their annotation.
	AnyScope bool
	// Finalizer is one that the Runners put on objects. Those under deletion stay
	// with their Runners until they are gone, to have it taken off. "": there is none.
	Finalizer string
	// SomeHeld is true if objects without the Finalizer end with their deletion.
	SomeHeld bool
	// Bound says why an object that can't be read must keep the Finalizer until
	// somebody edits it back; "": it need not. nil: no object must.
	Bound func(*unstructured.Unstructured) string
	// Missing is called when the API server does not know the resource; it must not
	// block.
	Missing  func()
	Recorder record.EventRecorder
	Log      *logrus.Entry
	Clock    clock.PassiveClock

	writes sync.WaitGroup // to objects that can't be read
}

// Informer returns the informer that feeds a Fleet until ctx ends, and its store,
// which has the index UIDIndex. It is client-go's plain indexer informer, which
// calls its one handler itself: a shared informer would put a queue in between.
// (cache.NewIndexerInformer, as it was called, is deprecated in favour of this
// function.)
func (s *Source[T]) Informer(ctx context.Context, f *Fleet[T]) (cache.Indexer, cache.Controller) {
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: s.listWatch(),
		ObjectType:    s.watched(),
		Handler: &handler[T]{
			ctx: ctx, source: s, fleet: f,
			writeReason: func(obj *unreadable, reason string) {
				s.writes.Go(func() { s.writeReason(ctx, obj, reason) })
			},
			release: func(obj *unreadable) {
				s.writes.Go(func() { s.release(ctx, obj) })
			},
		},
		Indexers:  cache.Indexers{UIDIndex: IndexByUID},
		Transform: func(obj any) (any, error) { return s.decode(obj), nil },
	})
	return store.(cache.Indexer), informer // as it is where there are Indexers
}

// Wait returns when nothing is written any more; the informer must have ended.
func (s *Source[T]) Wait() { s.writes.Wait() }

// listWatch lists and watches objects without decoding them. A typed client
// fails on a whole list if one object in it has, say, a text for a number; such
// objects exist where a CRD without a schema, like those of v0.9.4, was in use.
func (s *Source[T]) listWatch() cache.ListerWatcher {
	reported := func(err error) error {
		if apierrors.IsNotFound(err) {
			s.Missing()
		}
		return err
	}
	resource := s.Dynamic.Resource(s.Resource).Namespace(s.Namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, options)
			return list, reported(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, options)
			return w, reported(err)
		},
	}, s.Dynamic)
}

// watched is an example of the objects that listWatch delivers.
func (s *Source[T]) watched() runtime.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(s.Resource.GroupVersion().WithKind(s.Kind))
	return u
}

// UIDIndex finds objects in the informer's store by their UID.
const UIDIndex = "uid"

// IndexByUID is the function of UIDIndex.
func IndexByUID(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	return []string{string(o.GetUID())}, nil
}

// KeyOf is the namespace and name of an object.
func KeyOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// outlastsDeletion reports whether a Runner has work left with an object under deletion.
func (s *Source[T]) outlastsDeletion(obj T) bool {
	return s.Finalizer != "" && (!s.SomeHeld || slices.Contains(obj.GetFinalizers(), s.Finalizer))
}
