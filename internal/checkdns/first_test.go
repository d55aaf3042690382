// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"fmt"
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
				putWAL(t, dir)
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

// The first member of a new cluster started on what somebody had left on its volume, and served that. It still
// has to come up if its pod is recreated before it has served: the new pod has nothing but the volume.
func TestAFirstMemberStartsOnItsOwnDataAlone(t *testing.T) {
	for name, c := range map[string]struct {
		data          bool
		begun, member string
		refused       bool
	}{
		"the first start":                           {},
		"the volume holds data of nobody known":     {data: true, refused: true},
		"the volume holds data of a former cluster": {data: true, begun: "c-b.c.ns.svc", refused: true},
		"a person has removed that data":            {begun: "c-b.c.ns.svc"},
		"its pod was recreated":                     {data: true, begun: "c-a.c.ns.svc"},
		"it has served from this pod":               {data: true, member: "8e9e05c52164694d"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := t.TempDir()
			dir, note := filepath.Join(volume, "data"), filepath.Join(volume, "data.begun")
			if c.data {
				putWAL(t, dir)
			}
			if c.begun != "" {
				if err := os.WriteFile(note, []byte(c.begun), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := map[string]string{datadir.StartedEnv: c.member}
			cfg, err := Parse([]string{"-name=c-a.c.ns.svc", "-skip-name", "-data-dir=" + dir, "-begun=" + note}, func(key string) string { return env[key] }, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Out = &bytes.Buffer{}
			for range 2 {
				err := Run(t.Context(), cfg)
				if refused := err != nil && strings.Contains(err.Error(), "holds data of another etcd"); refused != c.refused || err != nil && !refused {
					t.Errorf("ended with %v", err)
				}
				if text := fmt.Sprint(err); len(text)-len(dir)+len("/var/etcd/data") > 285 {
					t.Errorf("the status would cut off what to do: %s", text)
				}
				if err == nil {
					putWAL(t, dir)
				}
			}
			if kept, err := datadir.HoldsData(dir); err != nil || !kept {
				t.Errorf("the data is there: %t, %v", kept, err)
			}
		})
	}
	if _, err := Parse([]string{"-name=c", "-begun=f"}, noEnv, &bytes.Buffer{}); err == nil {
		t.Error("-begun is taken without -data-dir")
	}
}
