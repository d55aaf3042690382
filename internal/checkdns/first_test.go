// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// Somebody made the volume of a former etcd available again, and left its data there. A new member started
// under the former identity.
func TestANewMemberStartsOnItsOwnDataAlone(t *testing.T) {
	for name, c := range map[string]struct {
		data, begun bool
		member      string
		refused     bool
	}{
		"the first start":                      {},
		"the volume is not empty":              {data: true, refused: true},
		"the pod restarts":                     {data: true, begun: true},
		"the pod restarts before etcd writes":  {begun: true},
		"its node has lost the pod's own disk": {data: true, member: "8e9e05c52164694d"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, first := t.TempDir(), filepath.Join(t.TempDir(), "first")
			if c.data {
				wal := filepath.Join(dir, "member", "wal")
				if err := os.MkdirAll(wal, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(wal, "0.wal"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.begun {
				if err := os.WriteFile(first, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := map[string]string{datadir.StartedEnv: c.member}
			cfg, err := Parse([]string{"-name=c", "-skip-name", "-data-dir=" + dir, "-first=" + first}, func(key string) string { return env[key] }, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Out = &bytes.Buffer{}
			for range 2 {
				err := Run(t.Context(), cfg)
				if refused := err != nil && strings.Contains(err.Error(), "holds data of another etcd"); refused != c.refused || err != nil && !refused {
					t.Errorf("ended with %v", err)
				}
			}
			if _, err := os.Stat(first); (err == nil) != (!c.data || c.begun) {
				t.Errorf("the file: %v", err)
			}
		})
	}
	if _, err := Parse([]string{"-name=c", "-first=f"}, noEnv, &bytes.Buffer{}); err == nil {
		t.Error("-first is taken without -data-dir")
	}
}
