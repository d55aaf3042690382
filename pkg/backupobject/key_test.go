// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupobject

import (
	"testing"
	"time"
)

func TestNamesOfBackupsOnAScheduleAreThoseOfV094(t *testing.T) {
	berlin := time.FixedZone("", 7200)
	key := Key("prod/etcd", 42, time.Date(2026, 7, 1, 1, 2, 3, 999, berlin))
	if want := "prod/etcd_v42_2026-06-30-23:02:03"; key != want {
		t.Errorf("key %s, want %s", key, want)
	}
	revision, begun, ok := ParseKey("prod/etcd", key)
	if !ok || revision != 42 || !begun.Equal(time.Date(2026, 6, 30, 23, 2, 3, 0, time.UTC)) {
		t.Errorf("read back: revision %d, begun %s, ok %v", revision, begun, ok)
	}
}

func TestOnlyNamesThatWeMakeAreOurs(t *testing.T) {
	for _, key := range []string{
		"etcd", "etcd_v", "etcd_v1", "etcd_v1_", "etcd_v_2026-06-30-23:02:03",
		"etcd2_v1_2026-06-30-23:02:03",     // a sibling
		"etcd_v2_v1_2026-06-30-23:02:03",   // a sibling with the path etcd_v2
		"etcd_v1_2026-06-30-23:02:03.part", // something beside it
		"etcd_v1_2026-06-30-23:02:03/x",
		"etcd_v1_2026-06-30", "etcd_v1_2026-13-30-23:02:03", "etcd_v1_2026-6-30-23:02:03",
		"etcd_v01_2026-06-30-23:02:03", "etcd_v+1_2026-06-30-23:02:03", "etcd_v-1_2026-06-30-23:02:03", "etcd_vx_2026-06-30-23:02:03",
		"etcd_v99999999999999999999_2026-06-30-23:02:03",
		"ETCD_v1_2026-06-30-23:02:03", "a/etcd_v1_2026-06-30-23:02:03",
	} {
		if _, _, ok := ParseKey("etcd", key); ok {
			t.Errorf("%s was taken for a backup of etcd", key)
		}
	}
}
