// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// LiftFormerAlarms lifts, while a restore is under way, the alarms of those who are no
// members: they came with the backup, and tell of a cluster that is gone. What they
// tell may be true of this one too; then etcd raises it anew, for a member that there
// is. They stay where a person is asked anyway:
//   - with an alarm of a member, because etcd forgets that one with any that is lifted,
//     until it is raised anew;
//   - NOSPACE with a database that is as large as its quota, which the next write would
//     find out. When somebody has made room, it is lifted.
func LiftFormerAlarms(o *Observation) Step {
	if o.Status.RestoredFrom == nil || o.Source == nil && o.SourceUnreadable == "" || o.LiftPutOff {
		return nil
	}
	alarms := o.Alarms()
	ofMember := func(a etcd.Alarm) bool {
		return slices.ContainsFunc(o.Members, func(m MemberState) bool { return m.ID == a.MemberID })
	}
	if slices.ContainsFunc(alarms, ofMember) {
		return nil
	}
	full := slices.ContainsFunc(o.Members, func(m MemberState) bool {
		return m.Status != nil && m.Status.DBQuota > 0 && m.Status.DBSize >= m.Status.DBQuota
	})
	alarms = slices.DeleteFunc(slices.Clone(alarms), func(a etcd.Alarm) bool {
		return a.Type != etcd.AlarmCorrupt && (a.Type != etcd.AlarmNoSpace || full)
	})
	if len(alarms) == 0 {
		return nil
	}
	return LiftAlarms{alarms}
}

// AlarmTexts names alarms as people know them: NOSPACE of 8e9e05c52164694d.
func AlarmTexts(alarms []etcd.Alarm) []string {
	texts := make([]string, len(alarms))
	for i, a := range alarms {
		texts[i] = a.Type + " of " + etcd.FormatID(a.MemberID)
	}
	return texts
}
