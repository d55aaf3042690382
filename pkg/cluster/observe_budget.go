// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func (c *Cluster) observeBudget(o *plan.Observation) error {
	live, err := c.cfg.Budgets.PodDisruptionBudgets(c.obj.Namespace).Get(o.Names.Budget())
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("PodDisruptionBudget %s: %w", o.Names.Budget(), err)
	}
	o.Budget.Name = o.Names.Budget()
	if live != nil {
		o.Budget.OwnedObject = c.ownedObject(live, o.Now)
	}
	o.Budget.Refused = c.postponed.lastRefusal(writeOfBudget, o.Now)
	o.Budget.PutOff = c.postponed.holds(writeOfBudget, o.Now)
	if !o.Budget.Owned && c.postponed.holds(takeoverOfBudget, o.Now) {
		o.Budget.Written = c.budgetWritten
	}
	if !o.Budget.Owned {
		return nil
	}
	o.Budget.MinAvailable = manifest.MinAvailableOf(live)
	_, o.Budget.Edited = manifest.UpdatedBudget(live, manifest.BuildBudget(c.obj, 0))
	if c.postponed.holds(correctionOfBudget, o.Now) {
		o.Budget.Written = c.budgetWritten
	}
	return nil
}
