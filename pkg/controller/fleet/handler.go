// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// handler passes the objects of the informer to the fleet. It goes by the object
// as it is now, not by what kind of event it came with: an informer that missed
// events delivers an object that was deleted and recreated as one that was
// updated.
type handler[T Object] struct {
	ctx    context.Context // ends all Runners; an informer's handler is not given one
	source *Source[T]
	fleet  *Fleet[T]
	// writeReason writes the reason into the status of an object that can't be
	// read. It does not block.
	writeReason func(obj *unreadable, reason string)
	// release takes the finalizer off an object that can't be read. It does not block.
	release func(obj *unreadable)
	// left are the objects that are reported as left to others.
	left map[types.NamespacedName]leftAs
}

// leftAs is an object as it was when it was left to others.
type leftAs struct {
	uid   types.UID
	scope string // the annotation's value; "": there is none
}

func (h *handler[T]) OnAdd(obj any, _ bool) { h.see(obj) }

func (h *handler[T]) OnUpdate(_, obj any) { h.see(obj) }

func (h *handler[T]) OnDelete(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		h.source.Log.WithError(err).Errorf("a deleted %s, %T, has no name", h.source.Kind, obj)
		return
	}
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	delete(h.left, name)
	h.fleet.Remove(name)
}

func (h *handler[T]) see(obj any) {
	switch obj := obj.(type) {
	case *unreadable:
		h.seeUnreadable(obj)
	case T:
		h.seeReadable(obj)
	default:
		h.source.Log.Errorf("the informer of %ss delivered a %T", h.source.Kind, obj)
	}
}

func (h *handler[T]) seeReadable(obj T) {
	switch {
	case obj.GetDeletionTimestamp() != nil && !h.source.outlastsDeletion(obj):
		// Another finalizer, such as that of a foreground deletion, keeps the object
		// while what belongs to it goes: nobody may make that again.
		h.fleet.Remove(KeyOf(obj))
	case !h.source.takes(obj):
		h.outOfScope(obj)
	default:
		delete(h.left, KeyOf(obj))
		h.fleet.Set(h.ctx, obj)
	}
}

func (h *handler[T]) outOfScope(obj Object) {
	key, noun := KeyOf(obj), h.fleet.cfg.Noun
	h.fleet.Remove(key)
	as := leftAs{obj.GetUID(), obj.GetAnnotations()[api.ScopeAnnotation]}
	if h.left[key] == as {
		return
	}
	if h.left == nil {
		h.left = map[types.NamespacedName]leftAs{}
	}
	h.left[key] = as
	switch {
	case unknownScope(obj):
		message := fmt.Sprintf("No operator manages this %s: annotation %s is %q; remove it, or set it to %q for an operator with -cluster-wide",
			noun, api.ScopeAnnotation, as.scope, api.ScopeClusterWide)
		h.source.Log.WithField(noun, key).Warn(message)
		h.source.Recorder.Event(obj, corev1.EventTypeWarning, h.fleet.unmanaged(), message)
	case h.source.ClusterWide:
		h.source.Log.WithField(noun, key).Infof("left to an operator of its namespace: this %s lacks the annotation %s; without such an operator nobody manages it", noun, ScopeSetting)
	}
}

// seeUnreadable reports an object that can't be understood. If an earlier
// state of it could be, that one is still managed.
func (h *handler[T]) seeUnreadable(obj *unreadable) {
	if !h.source.takes(obj) {
		h.outOfScope(obj)
		return
	}
	if obj.DeletionTimestamp != nil {
		// Its Runner can't see that it goes. If somebody edits it back, another begins.
		h.fleet.Remove(KeyOf(obj))
		if !slices.Contains(obj.Finalizers, h.source.Finalizer) {
			return
		}
		if obj.bound == "" {
			h.release(obj)
			return
		}
	}
	if !h.fleet.Has(obj.UID) {
		h.fleet.Remove(KeyOf(obj)) // a former object of this name
	}
	advice := h.source.advice(obj)
	reason := fmt.Sprintf("the spec is refused: %v; %s", obj.err, advice)
	if obj.reason == reason {
		return // that is what was just written
	}
	h.source.Log.WithError(obj.err).Error(advice)
	h.source.Recorder.Eventf(obj, corev1.EventTypeWarning, "Spec Not Readable", "%v; %s", obj.err, advice)
	h.writeReason(obj, reason)
}
