// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// observeServices compares the Services in the cache with those that should be.
func (c *Cluster) observeServices(o *observation) error {
	services, err := c.cfg.Services.Services(c.obj.Namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("services of the cluster: %w", err)
	}
	peer, client := buildPeerService(c.obj), buildClientService(c.obj)
	o.peerService.name, o.clientService.name = peer.Name, client.Name
	for _, svc := range services {
		seen := belongingOf(svc, c.obj)
		switch svc.Name {
		case peer.Name:
			o.peerService = c.compareService(seen, svc, peer, o)
		case client.Name:
			o.clientService = c.compareService(seen, svc, client, o)
		default:
			if seen.owned && svc.Labels[clusterLabel] == c.obj.Name {
				seen.putOff = c.postponed.holds(writeOf(svc.Name), o.now)
				o.formerServices = append(o.formerServices, seen)
			}
		}
	}
	// A peer Service that is there is put off as well, so that what comes after it
	// is done; one that is missing is tried at each pass.
	o.peerService.taken = !o.peerService.owned && c.postponed.holds(takenBy(peer.Name), o.now)
	o.clientService.putOff = o.clientService.putOff || c.postponed.holds(writeOf(client.Name), o.now)
	return nil
}

func (c *Cluster) compareService(seen belonging, live, want *corev1.Service, o *observation) belonging {
	if seen.owned {
		_, seen.edited = mendedService(live, want)
		seen.remake = needsRemaking(live, want)
		seen.putOff = c.postponed.holds(c.mendingOf(live.Name), o.now) || c.postponed.holds(writeOf(live.Name), o.now)
	}
	return seen
}

func writeOf(service string) string { return "write service " + service }

func takenBy(service string) string { return "service " + service + " of somebody else" }

// mendingOf names the mending of a Service to one state of the spec: after an
// edit of the spec it need not wait.
func (c *Cluster) mendingOf(service string) string {
	return fmt.Sprintf("mend service %s to generation %d", service, c.obj.Generation)
}

func (c *Cluster) wantedService(client bool) *corev1.Service {
	if client {
		return buildClientService(c.obj)
	}
	return buildPeerService(c.obj)
}

// createService makes a Service that is missing. One of that name that is left
// from an earlier EtcdCluster is taken over, for its owner takes it away with
// itself; one that belongs to somebody else is not touched.
func (c *Cluster) createService(ctx context.Context, s createService) error {
	want := c.wantedService(s.client)
	services := c.cfg.Kube.CoreV1().Services(want.Namespace)
	_, err := services.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return c.takeOverService(ctx, s.client, want)
	}
	// The members can do without the client Service, and are taken care of while
	// it is put off; without the peer Service little works.
	c.writeEnded(writeOf(want.Name), err)
	return wrap(err, "create service %s", want.Name)
}

func (c *Cluster) takeOverService(ctx context.Context, client bool, want *corev1.Service) error {
	live, err := c.cfg.Kube.CoreV1().Services(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get service %s: %w", want.Name, err)
	}
	if live.DeletionTimestamp != nil {
		return fmt.Errorf("service %s: %w: an older one is being deleted", want.Name, errCacheBehind)
	}
	if belongsToOthers(live, c.obj) {
		what := takenBy(want.Name)
		if client {
			what = writeOf(want.Name)
		}
		c.postponed[what] = c.cfg.Clock.Now().Add(takenPause)
		err := fmt.Errorf("service %s belongs to something else: delete or rename it, the cluster needs this name", want.Name)
		c.notices.serviceTaken(err)
		return err
	}
	if needsRemaking(live, want) {
		return c.deleteService(ctx, deleteService{name: live.Name, uid: live.UID})
	}
	mended, edited := mendedService(live, want)
	if edited == "" {
		return errCacheBehind // it was just made
	}
	// Whoever replaces this EtcdCluster takes its name off the Services, so that they
	// outlive it; they must not get it back meanwhile.
	switch latest, err := c.latest(ctx); {
	case err != nil:
		return fmt.Errorf("look whether the EtcdCluster still wants service %s: %w", want.Name, err)
	case latest.DeletionTimestamp != nil:
		return fmt.Errorf("service %s: %w: the EtcdCluster is being deleted", want.Name, errCacheBehind)
	}
	return c.updateService(ctx, mended)
}

// mendService updates what the cache shows; if that is no longer what is, the
// API server refuses, and the next pass sees more.
func (c *Cluster) mendService(ctx context.Context, s mendService) error {
	want := c.wantedService(s.client)
	live, err := c.cfg.Services.Services(want.Namespace).Get(want.Name)
	if err != nil {
		return fmt.Errorf("service %s: %w", want.Name, err)
	}
	mended, _ := mendedService(live, want)
	if err := c.updateService(ctx, mended); err != nil {
		return err
	}
	c.postponed[c.mendingOf(want.Name)] = c.cfg.Clock.Now().Add(c.pauseAfterMending("service " + want.Name))
	c.notices.mended("Service "+want.Name, s.edited)
	return nil
}

func (c *Cluster) updateService(ctx context.Context, svc *corev1.Service) error {
	_, err := c.cfg.Kube.CoreV1().Services(svc.Namespace).Update(ctx, svc, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("update service %s: %w: %w", svc.Name, errCacheBehind, err)
	}
	c.writeEnded(writeOf(svc.Name), err)
	return wrap(err, "update service %s", svc.Name)
}

func (c *Cluster) deleteService(ctx context.Context, s deleteService) error {
	err := c.cfg.Kube.CoreV1().Services(c.obj.Namespace).Delete(ctx, s.name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.uid))})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		c.writeEnded(writeOf(s.name), nil)
		return errCacheBehind // until the cache shows that it is gone
	default:
		c.writeEnded(writeOf(s.name), err)
		return fmt.Errorf("delete service %s: %w", s.name, err)
	}
}
