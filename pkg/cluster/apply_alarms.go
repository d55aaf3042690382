// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// liftingOfAlarms names what the operator delays after a failure to disarm alarms: a cluster
// can grow with them.
const liftingOfAlarms = "lifting of alarms"

func (c *Cluster) liftAlarms(ctx context.Context, s plan.LiftAlarms) error {
	err := c.onMember(ctx, c.change, changeTimeout, func(ctx context.Context, conn Member) error {
		for _, a := range s.Alarms {
			if err := conn.Disarm(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		if !etcd.IsNotYet(err) && !errors.Is(err, errNoQuorum) {
			c.postponed.put(liftingOfAlarms, c.cfg.Clock.Now().Add(refusedPause))
		}
		return err
	}
	if !s.Fence { // the event of the import says it
		c.notices.alarmsLifted(s)
	}
	return nil
}

func (n *notices) alarmsLifted(s plan.LiftAlarms) {
	n.Normal("Alarms Lifted", "The backup brought along alarms of removed members, and the operator disarmed them: %s. etcd raises those again that apply to this cluster", strings.Join(plan.AlarmTexts(s.Alarms), ", "))
}
