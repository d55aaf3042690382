// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderservice

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// manager keeps Kubernetes' controllers away from our slice
	// (endpointslice.kubernetes.io/managed-by).
	manager = "restore-operator.etcd.database.coreos.com"
	// mirroring copies Endpoints of Services without a selector into slices.
	mirroring = "endpointslicemirroring-controller.k8s.io"
)

// keepSlices creates or corrects our slice, and deletes the Service's other slices, which lead
// elsewhere.
func (k *Keeper) keepSlices(ctx context.Context, address netip.Addr, kind discoveryv1.AddressType) error {
	client := k.cfg.Kube.DiscoveryV1().EndpointSlices(k.cfg.Namespace)
	found, err := client.List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + k.cfg.Name})
	if err != nil {
		return fmt.Errorf("list the EndpointSlices of Service %s: %w", k.cfg.Name, err)
	}
	want := k.slice(address, kind)
	// Our slice comes first: a client waits for it.
	ours := slices.IndexFunc(found.Items, func(s discoveryv1.EndpointSlice) bool { return s.Name == want.Name })
	if ours < 0 {
		err = k.createSlice(ctx, want)
	} else {
		err = k.mendSlice(ctx, &found.Items[ours], want)
	}
	if err != nil {
		return err
	}
	for i, s := range found.Items {
		if i != ours {
			if err := k.deleteOther(ctx, &s); err != nil {
				return err
			}
		}
	}
	return nil
}

// slice returns the desired slice.
func (k *Keeper) slice(address netip.Addr, kind discoveryv1.AddressType) *discoveryv1.EndpointSlice {
	yes, tcp, name, port := true, corev1.ProtocolTCP, portName, k.cfg.ListenPort
	endpoint := discoveryv1.Endpoint{
		Addresses:  []string{address.String()},
		Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes},
	}
	if k.self.pod != "" {
		endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: k.cfg.Namespace, Name: k.self.pod, UID: k.self.uid}
	}
	if k.self.node != "" {
		endpoint.NodeName = &k.self.node
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: k.cfg.Name, Namespace: k.cfg.Namespace, Labels: map[string]string{
			api.AppLabel: k.cfg.Name, discoveryv1.LabelServiceName: k.cfg.Name, discoveryv1.LabelManagedBy: manager,
		}},
		AddressType: kind,
		Endpoints:   []discoveryv1.Endpoint{endpoint},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
	}
}

// createSlice creates our slice. If one of that name lacks the Service's label, somebody has
// edited it, and createSlice corrects it.
func (k *Keeper) createSlice(ctx context.Context, want *discoveryv1.EndpointSlice) error {
	client := k.cfg.Kube.DiscoveryV1().EndpointSlices(k.cfg.Namespace)
	_, err := client.Create(ctx, want, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		live, err := client.Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read EndpointSlice %s: %w", want.Name, err)
		}
		return k.mendSlice(ctx, live, want)
	case err != nil:
		return fmt.Errorf("create EndpointSlice %s: %w", want.Name, err)
	}
	k.log.WithField("address", want.Endpoints[0].Addresses[0]).Info("the Service of this operator leads here")
	return nil
}

// mendSlice corrects our slice, which may still be a former leader's.
func (k *Keeper) mendSlice(ctx context.Context, live, want *discoveryv1.EndpointSlice) error {
	client := k.cfg.Kube.DiscoveryV1().EndpointSlices(k.cfg.Namespace)
	if live.AddressType != want.AddressType { // this field is immutable
		if err := client.Delete(ctx, live.Name, exactly(live)); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete EndpointSlice %s, which is for %s: %w", live.Name, live.AddressType, err)
		}
		return k.createSlice(ctx, want)
	}
	mended := live.DeepCopy()
	setLabels(&mended.ObjectMeta, want.Labels)
	mended.Endpoints, mended.Ports, mended.OwnerReferences = want.Endpoints, want.Ports, nil
	if equality.Semantic.DeepEqual(live, mended) {
		return nil
	}
	if _, err := client.Update(ctx, mended, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write EndpointSlice %s: %w", want.Name, err)
	}
	k.log.WithField("address", want.Endpoints[0].Addresses[0]).Info("the Service of this operator leads here now")
	return nil
}

// deleteOther deletes a slice that is not ours.
func (k *Keeper) deleteOther(ctx context.Context, s *discoveryv1.EndpointSlice) error {
	if s.Labels[discoveryv1.LabelManagedBy] == mirroring {
		// The slice would come back while the Endpoints exist from which it is copied.
		err := k.cfg.Kube.CoreV1().Endpoints(k.cfg.Namespace).Delete(ctx, k.cfg.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the Endpoints %s, which lead elsewhere: %w", k.cfg.Name, err)
		}
	}
	if err := k.cfg.Kube.DiscoveryV1().EndpointSlices(k.cfg.Namespace).Delete(ctx, s.Name, exactly(s)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete EndpointSlice %s, which leads elsewhere: %w", s.Name, err)
	}
	k.log.WithField("slice", s.Name).Warn("deleted an EndpointSlice by which the Service of this operator led elsewhere")
	return nil
}

// exactly restricts a deletion to the observed object.
func exactly(o metav1.Object) metav1.DeleteOptions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
}

// leave deletes our slice, unless another instance has taken it over.
func (k *Keeper) leave(ctx context.Context) {
	if k.self == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalLimit)
	defer cancel()
	if err := k.tryLeave(ctx); err != nil {
		k.log.WithError(err).Warn("could not remove this instance's address: until another one leads, requests to the Service wait in vain")
	}
}

func (k *Keeper) tryLeave(ctx context.Context) error {
	client := k.cfg.Kube.DiscoveryV1().EndpointSlices(k.cfg.Namespace)
	live, err := client.Get(ctx, k.cfg.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read EndpointSlice %s: %w", k.cfg.Name, err)
	}
	if !k.isOurs(live) {
		return nil
	}
	// A conflict means that the next leader has written it.
	if err := client.Delete(ctx, live.Name, exactly(live)); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete EndpointSlice %s: %w", k.cfg.Name, err)
	}
	return nil
}

// isOurs reports whether a slice leads to this instance.
func (k *Keeper) isOurs(live *discoveryv1.EndpointSlice) bool {
	address, _ := k.self.in([]corev1.IPFamily{corev1.IPFamily(live.AddressType)})
	want := k.slice(address, live.AddressType).Endpoints
	return equality.Semantic.DeepEqual(live.Endpoints, want)
}
