// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Names of writes of the PodDisruptionBudget that the operator may delay. The members do not
// need it: a problem with it stops no replacement.
const (
	writeOfBudget      = "write the PodDisruptionBudget"
	correctionOfBudget = "correct the PodDisruptionBudget"
	takeoverOfBudget   = "take over the PodDisruptionBudget"
)

func (c *Cluster) budgets() policyclient.PodDisruptionBudgetInterface {
	return c.cfg.Kube.PolicyV1().PodDisruptionBudgets(c.obj.Namespace)
}

// createBudget creates the PodDisruptionBudget, or takes over that of an earlier EtcdCluster.
// It does not touch one that belongs to somebody else.
func (c *Cluster) createBudget(ctx context.Context, s plan.CreateBudget) error {
	want := manifest.BuildBudget(c.obj, s.MinAvailable)
	_, err := c.budgets().Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return c.writeOverLiveBudget(ctx, want)
	}
	c.writeEnded(writeOfBudget, err)
	return wrap(err, "create PodDisruptionBudget %s", want.Name)
}

// writeOverLiveBudget corrects the PodDisruptionBudget that the API server has. The cache has an older
// state of it, or does not show it, and may do so for long: without this, each pass would try in vain.
func (c *Cluster) writeOverLiveBudget(ctx context.Context, want *policyv1.PodDisruptionBudget) error {
	live, err := c.budgets().Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get PodDisruptionBudget %s: %w", want.Name, err)
	}
	if live.DeletionTimestamp != nil {
		c.postponed.put(writeOfBudget, c.cfg.Clock.Now().Add(correctionPause)) // a finalizer may hold it for long
		return fmt.Errorf("PodDisruptionBudget %s: %w", want.Name, errBeingDeleted)
	}
	if manifest.BelongsToOthers(live, c.obj) {
		err := fmt.Errorf("PodDisruptionBudget %s belongs to something else: delete it, or set spec.podDisruptionBudget to false and keep it", want.Name)
		c.postponed.putRefused(writeOfBudget, err.Error(), c.cfg.Clock.Now().Add(takenPause))
		c.notices.budgetTaken(err)
		return err
	}
	corrected, edited := manifest.UpdatedBudget(live, want)
	if edited != "" || manifest.MinAvailableOf(live) != manifest.MinAvailableOf(want) {
		if err := c.updateBudget(ctx, corrected); err != nil {
			return err
		}
	}
	// Somebody may take the labels again, which hide the budget from the cache.
	c.budgetIs(manifest.MinAvailableOf(want), c.pauseAfterCorrection(correctionOfBudget), takeoverOfBudget, correctionOfBudget)
	return nil
}

// budgetIs notes what the API server has. For a while, the operator does not write the same number again by
// way of these writes, although the cache may show another one.
func (c *Cluster) budgetIs(minAvailable int, pause time.Duration, writes ...string) {
	c.budgetWritten = minAvailable
	until := c.cfg.Clock.Now().Add(pause)
	for _, what := range writes {
		c.postponed.put(what, until)
	}
}

func (c *Cluster) correctBudget(ctx context.Context, s plan.UpdateBudget) error {
	live, err := c.cfg.Budgets.PodDisruptionBudgets(c.obj.Namespace).Get(manifest.NamesOf(c.obj).Budget())
	if err != nil {
		return fmt.Errorf("PodDisruptionBudget %s: %w", manifest.NamesOf(c.obj).Budget(), err)
	}
	want := manifest.BuildBudget(c.obj, s.To)
	corrected, _ := manifest.UpdatedBudget(live, want)
	switch err = c.updateBudget(ctx, corrected); {
	case apierrors.IsConflict(err):
		return c.writeOverLiveBudget(ctx, want)
	case apierrors.IsNotFound(err): // somebody has deleted it
		if err = c.createBudget(ctx, plan.CreateBudget{MinAvailable: s.To}); err == nil {
			c.budgetIs(s.To, correctionPause, correctionOfBudget)
		}
		return err
	case err != nil:
		return err
	}
	c.budgetIs(s.To, c.pauseAfterCorrection(correctionOfBudget), correctionOfBudget)
	if s.Edited != "" {
		c.notices.corrected("PodDisruptionBudget "+live.Name, s.Edited)
	}
	return nil
}

func (c *Cluster) updateBudget(ctx context.Context, b *policyv1.PodDisruptionBudget) error {
	_, err := c.budgets().Update(ctx, b, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("update PodDisruptionBudget %s: %w: %w", b.Name, errCacheBehind, err)
	}
	c.writeEnded(writeOfBudget, err)
	return wrap(err, "update PodDisruptionBudget %s", b.Name)
}

func (c *Cluster) deleteBudget(ctx context.Context, s plan.DeleteBudget) error {
	err := c.budgets().Delete(ctx, manifest.NamesOf(c.obj).Budget(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		c.writeEnded(writeOfBudget, nil)
		c.postponed.put(deletionOf(s.UID), c.cfg.Clock.Now().Add(correctionPause))
		return nil
	default:
		c.writeEnded(writeOfBudget, err)
		return fmt.Errorf("delete PodDisruptionBudget %s: %w", manifest.NamesOf(c.obj).Budget(), err)
	}
}
