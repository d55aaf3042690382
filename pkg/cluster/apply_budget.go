// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
)

// What may be put off with the PodDisruptionBudget. The members can do without
// it: whatever is wrong with it keeps nobody from being replaced.
const (
	writeOfBudget   = "write the PodDisruptionBudget"
	mendingOfBudget = "mend the PodDisruptionBudget"
)

func (c *Cluster) observeBudget(o *observation) error {
	live, err := c.cfg.Budgets.PodDisruptionBudgets(c.obj.Namespace).Get(o.names.budget())
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("PodDisruptionBudget %s: %w", o.names.budget(), err)
	}
	o.budget.name = o.names.budget()
	if live != nil {
		o.budget.belonging = belongingOf(live, c.obj)
	}
	o.budget.putOff = c.postponed.holds(writeOfBudget, o.now)
	if !o.budget.owned {
		return nil
	}
	o.budget.minAvailable = minAvailableOf(live)
	_, o.budget.edited = mendedBudget(live, buildBudget(c.obj, 0))
	if c.postponed.holds(mendingOfBudget, o.now) {
		o.budget.written = c.budgetWritten
	}
	return nil
}

func (c *Cluster) budgets() policyclient.PodDisruptionBudgetInterface {
	return c.cfg.Kube.PolicyV1().PodDisruptionBudgets(c.obj.Namespace)
}

// createBudget makes the PodDisruptionBudget, or takes over that of an earlier
// EtcdCluster; one that belongs to somebody else is not touched.
func (c *Cluster) createBudget(ctx context.Context, s createBudget) error {
	want := buildBudget(c.obj, s.minAvailable)
	_, err := c.budgets().Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return c.takeOverBudget(ctx, want)
	}
	c.writeEnded(writeOfBudget, err)
	return wrap(err, "create PodDisruptionBudget %s", want.Name)
}

func (c *Cluster) takeOverBudget(ctx context.Context, want *policyv1.PodDisruptionBudget) error {
	live, err := c.budgets().Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get PodDisruptionBudget %s: %w", want.Name, err)
	}
	if live.DeletionTimestamp != nil {
		return fmt.Errorf("PodDisruptionBudget %s: %w: an older one is being deleted", want.Name, errCacheBehind)
	}
	if belongsToOthers(live, c.obj) {
		c.postponed[writeOfBudget] = c.cfg.Clock.Now().Add(takenPause)
		err := fmt.Errorf("PodDisruptionBudget %s belongs to something else: delete it, or set spec.podDisruptionBudget to false and keep it", want.Name)
		c.notices.budgetTaken(err)
		return err
	}
	mended, edited := mendedBudget(live, want)
	if edited == "" && minAvailableOf(live) == minAvailableOf(want) {
		return errCacheBehind // it was just made
	}
	return c.updateBudget(ctx, mended)
}

func (c *Cluster) mendBudget(ctx context.Context, s mendBudget) error {
	live, err := c.cfg.Budgets.PodDisruptionBudgets(c.obj.Namespace).Get(namesOf(c.obj).budget())
	if err != nil {
		return fmt.Errorf("PodDisruptionBudget %s: %w", namesOf(c.obj).budget(), err)
	}
	mended, _ := mendedBudget(live, buildBudget(c.obj, s.to))
	if err := c.updateBudget(ctx, mended); err != nil {
		return err
	}
	c.budgetWritten = s.to
	c.postponed[mendingOfBudget] = c.cfg.Clock.Now().Add(mendPause)
	if s.edited != "" {
		c.notices.mended("PodDisruptionBudget "+live.Name, s.edited)
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

func (c *Cluster) deleteBudget(ctx context.Context, s deleteBudget) error {
	err := c.budgets().Delete(ctx, namesOf(c.obj).budget(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.uid))})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		c.writeEnded(writeOfBudget, nil)
		return errCacheBehind // until the cache shows that it is gone
	default:
		c.writeEnded(writeOfBudget, err)
		return fmt.Errorf("delete PodDisruptionBudget %s: %w", namesOf(c.obj).budget(), err)
	}
}
