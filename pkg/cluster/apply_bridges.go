// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func (c *Cluster) endpointSlices() discoveryclient.EndpointSliceInterface {
	return c.cfg.Kube.DiscoveryV1().EndpointSlices(c.obj.Namespace)
}

// writeBridge makes a Service lead to the members of the step. Its slices are the operator's: it
// does not edit the Service, nor the slices that Kubernetes writes.
func (c *Cluster) writeBridge(ctx context.Context, s plan.WriteBridge) error {
	b := c.bridges[s.Service]
	if b == nil {
		return nil
	}
	var want []*discoveryv1.EndpointSlice
	if len(s.To) > 0 {
		want = manifest.BuildBridge(c.obj, b.service, s.To)
	}
	again := b.unfinished // the difference may be the operator's own, and nobody's edit
	b.unfinished = true
	for _, family := range manifest.BridgeFamilies {
		i := slices.IndexFunc(want, func(w *discoveryv1.EndpointSlice) bool { return w.AddressType == discoveryv1.AddressType(family) })
		var err error
		switch live := b.slices[family]; {
		case i < 0 && live == nil:
		case i < 0:
			err = c.deleteSlice(ctx, b, family)
		case live == nil:
			err = c.createSlice(ctx, b, family, want[i])
		default:
			err = c.updateSlice(ctx, b, family, want[i])
		}
		if err != nil {
			return err
		}
	}
	b.unfinished = false
	c.writeEnded(writeOfBridge(s.Service), nil)
	if s.Edited != "" && !again {
		c.notices.corrected("The bridge of Service "+s.Service, s.Edited)
	}
	return nil
}

func (c *Cluster) createSlice(ctx context.Context, b *bridge, family corev1.IPFamily, want *discoveryv1.EndpointSlice) error {
	created, err := c.endpointSlices().Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return c.takeOverSlice(ctx, b, family, want)
	}
	if err != nil {
		c.writeEnded(writeOfBridge(b.service.Name), err)
		return fmt.Errorf("create EndpointSlice %s: %w", want.Name, err)
	}
	c.sliceWritten(b, family, created, want)
	return nil
}

// takeOverSlice continues with the slice of an earlier EtcdCluster. It does not touch one that
// belongs to somebody else.
func (c *Cluster) takeOverSlice(ctx context.Context, b *bridge, family corev1.IPFamily, want *discoveryv1.EndpointSlice) error {
	live, err := c.endpointSlices().Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("read EndpointSlice %s: %w", want.Name, err)
	case live.DeletionTimestamp != nil:
		// A finalizer may hold it for long, and other steps do not wait for that.
		c.postponed.put(writeOfBridge(b.service.Name), c.cfg.Clock.Now().Add(refusedPause))
		return fmt.Errorf("EndpointSlice %s: %w", want.Name, errBeingDeleted)
	case manifest.BelongsToOthers(live, c.obj):
		err := fmt.Errorf("EndpointSlice %s belongs to something else: delete it, the bridge of service %s needs this name", want.Name, b.service.Name)
		if owner := metav1.GetControllerOfNoCopy(live); owner != nil && owner.Kind == api.EtcdClusterResourceKind {
			err = fmt.Errorf("service %s leads to EtcdCluster %s, which holds other data: a service can have one bridge; remove it from spec.service.bridges of one of both", b.service.Name, owner.Name)
		}
		c.postponed.putRefused(writeOfBridge(b.service.Name), err.Error(), c.cfg.Clock.Now().Add(takenPause))
		c.notices.bridgeHeld(err.Error())
		return err
	}
	b.slices[family] = live
	return errCacheBehind // the next pass corrects what differs
}

func (c *Cluster) updateSlice(ctx context.Context, b *bridge, family corev1.IPFamily, want *discoveryv1.EndpointSlice) error {
	mended, edited := manifest.UpdatedBridge(b.slices[family], want)
	if edited == "" {
		return nil
	}
	updated, err := c.endpointSlices().Update(ctx, mended, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		b.readAgain()
		return fmt.Errorf("update EndpointSlice %s: %w: %w", want.Name, errCacheBehind, err)
	case err != nil:
		c.writeEnded(writeOfBridge(b.service.Name), err)
		return fmt.Errorf("update EndpointSlice %s: %w", want.Name, err)
	}
	c.sliceWritten(b, family, updated, want)
	return nil
}

// sliceWritten notes what the API server has stored. If admission has changed it, another write
// waits.
func (c *Cluster) sliceWritten(b *bridge, family corev1.IPFamily, stored, want *discoveryv1.EndpointSlice) {
	b.slices[family] = stored
	if _, edited := manifest.UpdatedBridge(stored, want); edited != "" {
		what := writeOfBridge(b.service.Name)
		c.postponed.put(what, c.cfg.Clock.Now().Add(c.pauseAfterCorrection(what)))
	}
}

func (c *Cluster) deleteSlice(ctx context.Context, b *bridge, family corev1.IPFamily) error {
	live := b.slices[family]
	err := c.endpointSlices().Delete(ctx, live.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(live.UID))})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		delete(b.slices, family)
		return nil
	case apierrors.IsConflict(err):
		b.readAgain()
		return fmt.Errorf("delete EndpointSlice %s: %w: %w", live.Name, errCacheBehind, err)
	}
	c.writeEnded(writeOfBridge(live.Labels[discoveryv1.LabelServiceName]), err)
	return fmt.Errorf("delete EndpointSlice %s: %w", live.Name, err)
}

// readAgain makes the next pass read the slices.
func (b *bridge) readAgain() {
	*b = bridge{slices: map[corev1.IPFamily]*discoveryv1.EndpointSlice{}, problem: b.problem, unread: b.unread, unfinished: b.unfinished}
}
