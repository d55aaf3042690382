// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func writeOf(service string) string { return "write service " + service }

func takenBy(service string) string { return "service " + service + " of somebody else" }

// takeoverOf names the correction of a Service that the cache does not show: it lost its labels.
func takeoverOf(service string) string { return "take over service " + service }

func correctionOf(service string) string { return "correct service " + service }

// deletionOf names an object that the operator has deleted, and that the cache may still show.
func deletionOf(uid types.UID) string { return "delete the object of UID " + string(uid) }

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
		_, err := c.writeOverLiveService(ctx, s.Client, want)
		return err
	}
	// The members do not need the client Service, so the pass continues without its write.
	// Without the peer Service, little works.
	c.writeEnded(writeOf(want.Name), err)
	return wrap(err, "create service %s", want.Name)
}

// writeOverLiveService corrects the Service that the API server has, and says what differed. The cache has
// an older state of it, or does not show it, and may do so for long: without this, each pass would try in
// vain.
func (c *Cluster) writeOverLiveService(ctx context.Context, client bool, want *corev1.Service) (edited string, err error) {
	live, err := c.cfg.Kube.CoreV1().Services(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get service %s: %w", want.Name, err)
	}
	if live.DeletionTimestamp != nil {
		c.serviceIs(want.Name, correctionPause) // a finalizer may hold it for long
		return "", fmt.Errorf("service %s: %w", want.Name, errBeingDeleted)
	}
	if manifest.BelongsToOthers(live, c.obj) {
		what, otherwise := takenBy(want.Name), "create the EtcdCluster under another name"
		if client {
			what, otherwise = writeOf(want.Name), "set spec.service.name to another name"
		}
		err := fmt.Errorf("service %s belongs to something else: delete it if nothing needs it, or %s", want.Name, otherwise)
		c.postponed.putRefused(what, err.Error(), c.cfg.Clock.Now().Add(takenPause))
		c.notices.serviceTaken(err)
		return "", err
	}
	if manifest.NeedsRemaking(live, want) {
		return "", c.deleteService(ctx, plan.DeleteService{Name: live.Name, UID: live.UID})
	}
	corrected, edited := manifest.UpdatedService(live, want)
	if edited == "" {
		c.serviceIs(want.Name, correctionPause)
		return "", nil
	}
	// To replace this EtcdCluster, a restore removes its name from the Services, so that they
	// survive. They must not get it back meanwhile.
	switch latest, err := c.latest(ctx); {
	case err != nil:
		return "", fmt.Errorf("check that the EtcdCluster still wants service %s: %w", want.Name, err)
	case latest.DeletionTimestamp != nil:
		return "", fmt.Errorf("service %s: %w: it is being deleted", want.Name, errSuperseded)
	}
	if err := c.updateService(ctx, corrected); err != nil {
		return "", err
	}
	// Somebody may take the labels again, which hide the Service from the cache.
	c.serviceIs(want.Name, c.pauseAfterCorrection(correctionOf(want.Name)))
	return edited, nil
}

// serviceIs notes that the API server has a Service as it should be, or can't have it. For a while, the
// operator does not rely on the cache, which shows another state of it, or nothing.
func (c *Cluster) serviceIs(name string, pause time.Duration) {
	until := c.cfg.Clock.Now().Add(pause)
	c.postponed.put(takeoverOf(name), until)
	c.postponed.put(c.forThisSpec(correctionOf(name)), until)
}

// correctService updates the Service in the cache. If the cache is outdated, the API server
// refuses, and the operator corrects the Service that the API server has.
func (c *Cluster) correctService(ctx context.Context, s plan.UpdateService) error {
	want := c.wantedService(s.Client)
	live, err := c.cfg.Services.Services(want.Namespace).Get(want.Name)
	if err != nil {
		return fmt.Errorf("service %s: %w", want.Name, err)
	}
	corrected, edited := manifest.UpdatedService(live, want)
	switch err = c.updateService(ctx, corrected); {
	case apierrors.IsConflict(err):
		if edited, err = c.writeOverLiveService(ctx, s.Client, want); err != nil || edited == "" {
			return err
		}
	case apierrors.IsNotFound(err): // somebody has deleted it
		if err = c.createService(ctx, plan.CreateService{Client: s.Client}); err == nil {
			c.serviceIs(want.Name, correctionPause)
		}
		return err
	case err != nil:
		return err
	default:
		pause := c.pauseAfterCorrection(correctionOf(want.Name))
		c.postponed.put(c.forThisSpec(correctionOf(want.Name)), c.cfg.Clock.Now().Add(pause))
	}
	c.notices.corrected("Service "+want.Name, edited)
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
		c.postponed.put(deletionOf(s.UID), c.cfg.Clock.Now().Add(correctionPause))
		return nil
	default:
		c.writeEnded(writeOf(s.Name), err)
		return fmt.Errorf("delete service %s: %w", s.Name, err)
	}
}
