// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func writeOf(service string) string { return "write service " + service }

func takenBy(service string) string { return "service " + service + " of somebody else" }

// takeoverOf names the correction of a Service that the cache does not show: it lost its labels.
func takeoverOf(service string) string { return "take over service " + service }

func correctionOf(service string) string { return "correct service " + service }

func (c *Cluster) wantedService(client bool) *corev1.Service {
	if client {
		return manifest.BuildClientService(c.obj)
	}
	return manifest.BuildPeerService(c.obj)
}

// createService creates a missing Service. It takes over one from an earlier EtcdCluster,
// because that one's owner would delete it. It does not touch one that belongs to somebody
// else.
func (c *Cluster) createService(ctx context.Context, s plan.CreateService) error {
	want := c.wantedService(s.Client)
	services := c.cfg.Kube.CoreV1().Services(want.Namespace)
	_, err := services.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return c.takeOverService(ctx, s.Client, want)
	}
	// The members do not need the client Service, so the pass continues without its write.
	// Without the peer Service, little works.
	c.writeEnded(writeOf(want.Name), err)
	return wrap(err, "create service %s", want.Name)
}

func (c *Cluster) takeOverService(ctx context.Context, client bool, want *corev1.Service) error {
	live, err := c.cfg.Kube.CoreV1().Services(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get service %s: %w", want.Name, err)
	}
	if live.DeletionTimestamp != nil {
		return fmt.Errorf("service %s of an earlier EtcdCluster: %w", want.Name, errBeingDeleted)
	}
	if manifest.BelongsToOthers(live, c.obj) {
		what, otherwise := takenBy(want.Name), "create the EtcdCluster under another name"
		if client {
			what, otherwise = writeOf(want.Name), "set spec.service.name to another name"
		}
		err := fmt.Errorf("service %s belongs to something else: delete it if nothing needs it, or %s", want.Name, otherwise)
		c.postponed.putRefused(what, err.Error(), c.cfg.Clock.Now().Add(takenPause))
		c.notices.serviceTaken(err)
		return err
	}
	if manifest.NeedsRemaking(live, want) {
		return c.deleteService(ctx, plan.DeleteService{Name: live.Name, UID: live.UID})
	}
	corrected, edited := manifest.UpdatedService(live, want)
	if edited == "" {
		return errCacheBehind // somebody has just created it
	}
	// To replace this EtcdCluster, a restore removes its name from the Services, so that they
	// survive. They must not get it back meanwhile.
	switch latest, err := c.latest(ctx); {
	case err != nil:
		return fmt.Errorf("check that the EtcdCluster still wants service %s: %w", want.Name, err)
	case latest.DeletionTimestamp != nil:
		return fmt.Errorf("service %s: %w: it is being deleted", want.Name, errSuperseded)
	}
	if err := c.updateService(ctx, corrected); err != nil {
		return err
	}
	// Somebody may take the labels again, which hide the Service from the cache.
	c.postponed.put(takeoverOf(want.Name), c.cfg.Clock.Now().Add(c.pauseAfterCorrection(correctionOf(want.Name))))
	return nil
}

// correctService updates the Service in the cache. If the cache is outdated, the API server
// refuses, and the next pass sees more.
func (c *Cluster) correctService(ctx context.Context, s plan.UpdateService) error {
	want := c.wantedService(s.Client)
	live, err := c.cfg.Services.Services(want.Namespace).Get(want.Name)
	if err != nil {
		return fmt.Errorf("service %s: %w", want.Name, err)
	}
	corrected, _ := manifest.UpdatedService(live, want)
	if err := c.updateService(ctx, corrected); err != nil {
		return err
	}
	pause := c.pauseAfterCorrection(correctionOf(want.Name))
	c.postponed.put(c.forThisSpec(correctionOf(want.Name)), c.cfg.Clock.Now().Add(pause))
	c.notices.corrected("Service "+want.Name, s.Edited)
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

func (c *Cluster) deleteService(ctx context.Context, s plan.DeleteService) error {
	err := c.cfg.Kube.CoreV1().Services(c.obj.Namespace).Delete(ctx, s.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		c.writeEnded(writeOf(s.Name), nil)
		return errBeingDeleted // until the cache shows that it is gone
	default:
		c.writeEnded(writeOf(s.Name), err)
		return fmt.Errorf("delete service %s: %w", s.Name, err)
	}
}
