// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// clusterHandler passes what the informer of EtcdClusters tells on to the fleet.
// It goes by the object as it is now, not by what kind of event it came with: an
// informer that missed events delivers a cluster that was deleted and made again
// as one that was updated.
type clusterHandler struct {
	ctx         context.Context // ends all clusters; an informer's handler is not given one
	fleet       *fleet
	clusterWide bool
	recorder    record.EventRecorder
	log         *logrus.Entry
	// writeReason writes status.reason of an object that can't be read. It does
	// not block.
	writeReason func(obj *unreadable, reason string)
}

func (h *clusterHandler) OnAdd(obj any, _ bool) { h.see(obj) }

func (h *clusterHandler) OnUpdate(_, obj any) { h.see(obj) }

func (h *clusterHandler) OnDelete(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		h.log.WithError(err).Errorf("a deleted EtcdCluster, %T, has no name", obj)
		return
	}
	h.fleet.remove(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
}

func (h *clusterHandler) see(obj any) {
	switch obj := obj.(type) {
	case *api.EtcdCluster:
		h.seeCluster(obj)
	case *unreadable:
		h.seeUnreadable(obj)
	default:
		h.log.Errorf("the informer of EtcdClusters delivered a %T", obj)
	}
}

func (h *clusterHandler) seeCluster(obj *api.EtcdCluster) {
	switch {
	case obj.DeletionTimestamp != nil:
		// A finalizer, such as that of a foreground deletion, keeps the object
		// while its pods go: nobody may make them again.
		h.fleet.remove(keyOf(obj))
	case !inScope(obj, h.clusterWide):
		h.outOfScope(obj)
	default:
		h.fleet.set(h.ctx, obj)
	}
}

func (h *clusterHandler) outOfScope(obj metav1.Object) {
	h.fleet.remove(keyOf(obj))
	if unknownScope(obj) {
		h.log.WithField("cluster", keyOf(obj)).Warnf("no operator takes care of this cluster: annotation %s is %q; remove it, or set it to %q for an operator with -cluster-wide",
			ScopeAnnotation, obj.GetAnnotations()[ScopeAnnotation], ScopeClusterWide)
	}
}

// seeUnreadable tells about an object that can't be understood. If an earlier
// state of it could be, that one is still taken care of.
func (h *clusterHandler) seeUnreadable(obj *unreadable) {
	if !inScope(obj, h.clusterWide) {
		h.outOfScope(obj)
		return
	}
	if !h.fleet.has(obj.UID) {
		h.fleet.remove(keyOf(obj)) // a former object of this name
	}
	reason := fmt.Sprintf("the spec is refused: %v; edit the object or delete it: until then its spec is not followed", obj.err)
	if obj.reason == reason {
		return // that is what was just written
	}
	h.log.WithError(obj.err).Error("edit the object or delete it; until then its spec is not followed")
	h.recorder.Eventf(obj, corev1.EventTypeWarning, "Spec Not Readable", "%v; edit the object or delete it: until then its spec is not followed", obj.err)
	h.writeReason(obj, reason)
}
