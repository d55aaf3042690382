// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// liftingOfAlarms is what is put off where alarms could not be lifted: a cluster can
// grow with them.
const liftingOfAlarms = "lifting of alarms"

// liftFormerAlarms lifts, while a restore is under way, the alarms of those who are no
// members: they came with the backup, and tell of a cluster that is gone. What they
// tell may be true of this one too; then etcd raises it anew, for a member that there
// is. They stay where a person is asked anyway:
//   - with an alarm of a member, because etcd forgets that one with any that is lifted,
//     until it is raised anew;
//   - NOSPACE with a database that is as large as its quota, which the next write would
//     find out. When somebody has made room, it is lifted.
func liftFormerAlarms(o *observation) step {
	if o.status.RestoredFrom == nil || o.source == nil && o.sourceUnreadable == "" || o.liftPutOff {
		return nil
	}
	alarms := o.alarms()
	ofMember := func(a etcd.Alarm) bool {
		return slices.ContainsFunc(o.members, func(m memberState) bool { return m.ID == a.MemberID })
	}
	if slices.ContainsFunc(alarms, ofMember) {
		return nil
	}
	full := slices.ContainsFunc(o.members, func(m memberState) bool {
		return m.status != nil && m.status.DBQuota > 0 && m.status.DBSize >= m.status.DBQuota
	})
	alarms = slices.DeleteFunc(slices.Clone(alarms), func(a etcd.Alarm) bool {
		return a.Type != etcd.AlarmCorrupt && (a.Type != etcd.AlarmNoSpace || full)
	})
	if len(alarms) == 0 {
		return nil
	}
	return liftAlarms{alarms}
}

func (c *Cluster) liftAlarms(ctx context.Context, s liftAlarms) error {
	err := c.onMember(ctx, changeTimeout, func(ctx context.Context, conn Member) error {
		for _, a := range s.alarms {
			if err := conn.Disarm(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		if !etcd.IsNotYet(err) && !errors.Is(err, errNoQuorum) {
			c.postponed[liftingOfAlarms] = c.cfg.Clock.Now().Add(refusedPause)
		}
		return err
	}
	c.notices.alarmsLifted(s)
	return nil
}

// alarmTexts names alarms as people know them: NOSPACE of 8e9e05c52164694d.
func alarmTexts(alarms []etcd.Alarm) []string {
	texts := make([]string, len(alarms))
	for i, a := range alarms {
		texts[i] = a.Type + " of " + etcd.FormatID(a.MemberID)
	}
	return texts
}

func (n *notices) alarmsLifted(s liftAlarms) {
	n.Normal("Alarms Lifted", "The backup brought along alarms of members that are gone, and they were lifted: %s. What holds for this cluster too, etcd raises anew", strings.Join(alarmTexts(s.alarms), ", "))
}
