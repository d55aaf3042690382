// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"reflect"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestAlarmsAreReadFromAStatus(t *testing.T) {
	for name, c := range map[string]struct {
		errs []string
		want []Alarm
	}{
		"none":                      {nil, nil},
		"no leader is no alarm":     {[]string{"etcdserver: no leader"}, nil},
		"as etcd 3.4 to 3.6 say it": {[]string{"memberID:10276657743932975437 alarm:NOSPACE "}, []Alarm{{10276657743932975437, AlarmNoSpace}}},
		"as etcd 3.7 says it":       {[]string{"memberID:10276657743932975437  alarm:NOSPACE"}, []Alarm{{10276657743932975437, AlarmNoSpace}}},
		"as this library says it":   {[]string{(&etcdserverpb.AlarmMember{MemberID: 7, Alarm: etcdserverpb.AlarmType_CORRUPT}).String()}, []Alarm{{7, AlarmCorrupt}}},
		"several, in one order":     {[]string{"memberID:9 alarm:NOSPACE", "etcdserver: no leader", "memberID:3 alarm:NOSPACE", "memberID:3 alarm:CORRUPT"}, []Alarm{{3, AlarmCorrupt}, {3, AlarmNoSpace}, {9, AlarmNoSpace}}},
		"of no member":              {[]string{"alarm:CORRUPT"}, []Alarm{{0, AlarmCorrupt}}},
		"one that was lifted":       {[]string{"memberID:3 alarm:NONE", "memberID:3"}, nil},
		"one that is not known yet": {[]string{"memberID:3 alarm:7"}, []Alarm{{3, "7"}}},
	} {
		if got := parseAlarms(c.errs); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
