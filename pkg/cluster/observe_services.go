// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// observeServices compares the Services in the cache with the desired ones.
func (c *Cluster) observeServices(o *plan.Observation) error {
	services := c.cfg.Services.Services(c.obj.Namespace)
	peer, client := manifest.BuildPeerService(c.obj), manifest.BuildClientService(c.obj)
	o.PeerService.Name, o.ClientService.Name = peer.Name, client.Name
	// By name: somebody may have edited the label.
	compare := func(want *corev1.Service, into *plan.OwnedObject) error {
		svc, err := services.Get(want.Name)
		switch {
		case apierrors.IsNotFound(err):
			into.PutOff = c.postponed.holds(takeoverOf(want.Name), o.Now)
			return nil
		case err != nil:
			return fmt.Errorf("service %s: %w", want.Name, err)
		}
		*into = c.compareService(c.ownedObject(svc, o.Now), svc, want, o)
		return nil
	}
	if err := errors.Join(compare(peer, &o.PeerService), compare(client, &o.ClientService)); err != nil {
		return err
	}
	labelled, err := services.List(labels.SelectorFromSet(labels.Set{api.ClusterLabel: c.obj.Name}))
	if err != nil {
		return fmt.Errorf("services of the cluster: %w", err)
	}
	for _, svc := range labelled {
		if svc.Name == peer.Name || svc.Name == client.Name {
			continue
		}
		if seen := c.ownedObject(svc, o.Now); seen.Owned {
			seen.PutOff = c.postponed.holds(writeOf(svc.Name), o.Now)
			o.FormerServices = append(o.FormerServices, seen)
		}
	}
	slices.SortFunc(o.FormerServices, func(a, b plan.OwnedObject) int { return strings.Compare(a.Name, b.Name) })
	// The operator may delay a write of an existing peer Service too, so that later rules
	// apply. It tries to create a missing one in each pass, unless somebody hides it.
	o.PeerService.Taken = !o.PeerService.Owned && c.postponed.holds(takenBy(peer.Name), o.Now)
	o.ClientService.Refused = c.postponed.lastRefusal(writeOf(client.Name), o.Now)
	o.ClientService.PutOff = o.ClientService.PutOff || c.postponed.holds(writeOf(client.Name), o.Now)
	return nil
}

func (c *Cluster) compareService(seen plan.OwnedObject, live, want *corev1.Service, o *plan.Observation) plan.OwnedObject {
	seen.PutOff = c.postponed.holds(takeoverOf(want.Name), o.Now)
	if seen.Owned {
		_, seen.Edited = manifest.UpdatedService(live, want)
		seen.Remake = manifest.NeedsRemaking(live, want)
		seen.PutOff = c.postponed.holds(c.forThisSpec(correctionOf(live.Name)), o.Now) || c.postponed.holds(writeOf(live.Name), o.Now)
	}
	return seen
}

func (c *Cluster) ownedObject(obj metav1.Object, now time.Time) plan.OwnedObject {
	return plan.OwnedObject{
		Name: obj.GetName(), UID: obj.GetUID(),
		Owned:   metav1.IsControlledBy(obj, c.obj),
		Leaving: obj.GetDeletionTimestamp() != nil || c.postponed.holds(deletionOf(obj.GetUID()), now),
	}
}

func (c *Cluster) observeOwnedObjects(o *plan.Observation) error {
	if err := c.observeServices(o); err != nil {
		return err
	}
	return c.observeBudget(o)
}
