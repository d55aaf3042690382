// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"strings"
	"testing"
)

func parsed(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestABackupFitsItsMinorAndLaterOnes(t *testing.T) {
	for _, tc := range []struct{ backup, target, refused string }{
		{"3.4.23", "3.4.37", ""},
		{"3.6.16", "3.6.1", ""}, // an older patch release
		{"3.4.23", "3.5.35", ""},
		{"3.5.35", "3.6.16", ""},
		{"3.4.23", "3.6.16", ""},
		{"3.4.23", "3.7.3", ""},
		{"3.5.35", "3.7.3", ""},
		{"3.6.16", "3.7.3", ""},
		{"3.7.3", "3.6.16", "set the cluster's version to 3.7 or later"},
		{"3.6.16", "3.5.35", "set the cluster's version to 3.6 or later"},
		{"3.2.13", "3.2.13", ""},
		{"3.2.13", "3.3.27", ""},
		{"3.3.27", "3.4.23", ""},
		{"3.3.27", "3.5.35", "set the cluster's version to 3.3, and upgrade it minor by minor"},
	} {
		err := RestoreFits(parsed(t, tc.backup), parsed(t, tc.target))
		if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("a backup of %s into %s: %v, want %q", tc.backup, tc.target, err, tc.refused)
		}
	}
}

func TestTheToolOfAVersion(t *testing.T) {
	for version, want := range map[string]struct {
		tool  string
		bumps bool
	}{
		"3.2.13": {"etcdctl", false}, "3.4.23": {"etcdctl", false}, "3.4.27": {"etcdctl", true},
		"3.5.0": {"etcdutl", false}, "3.5.9": {"etcdutl", false}, "3.5.10": {"etcdutl", true},
		"3.6.0": {"etcdutl", true}, "3.7.3": {"etcdutl", true},
	} {
		v := parsed(t, version)
		if v.SnapshotTool() != want.tool || v.HasBumpRevision() != want.bumps {
			t.Errorf("%s: %s, bumps revisions %t", version, v.SnapshotTool(), v.HasBumpRevision())
		}
	}
}
