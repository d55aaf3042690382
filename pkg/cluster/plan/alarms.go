// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// LiftFormerAlarms disarms, during a restore, the alarms of removed members. They came with
// the backup and concern a former cluster. If one applies to this cluster too, etcd raises it
// again for an existing member. The alarms stay if a person must act anyway:
//
// - with an alarm of an existing member, because disarming any alarm also hides that one until
// etcd raises it again;
//
// - with NOSPACE and a database as large as its quota, which the next write would hit. Once
// somebody has freed space, the alarm is disarmed.
//
// The alarm that came with the copy of a running etcd is the operator's own. It goes first: until
// then, nobody can write.
func LiftFormerAlarms(o *Observation) Step {
	if o.Fenced() && !o.LiftPutOff {
		return LiftAlarms{Alarms: []etcd.Alarm{o.Import.Fence}, Fence: true}
	}
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
	return LiftAlarms{Alarms: alarms}
}

// AlarmTexts names alarms for people: NOSPACE of 8e9e05c52164694d.
func AlarmTexts(alarms []etcd.Alarm) []string {
	texts := make([]string, len(alarms))
	for i, a := range alarms {
		texts[i] = a.Type + " of " + etcd.FormatID(a.MemberID)
	}
	return texts
}
