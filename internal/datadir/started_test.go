// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAMemberThatHasServedNeedsItsData(t *testing.T) {
	for name, tc := range map[string]struct {
		data   bool
		member string
		want   string // of the error
	}{
		"the first start":      {},
		"data of nobody known": {data: true},
		"with its data":        {data: true, member: "8e9e05c52164694d"},
		"without its data":     {member: "8e9e05c52164694d", want: "member 8e9e05c52164694d has served"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.data {
				wal := filepath.Join(dir, "member", "wal")
				if err := os.MkdirAll(wal, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(wal, "0.wal"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := CheckStarted(dir, tc.member)
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
