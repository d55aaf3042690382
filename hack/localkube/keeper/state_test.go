// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A user with a small root disk names a directory of a larger one. All else in it stays.
func TestADirectoryOfTheUserIsNotRemoved(t *testing.T) {
	for name, file := range map[string]string{
		"files":                 "photos/1.jpg",
		"settings of another":   "config.json",
		"partial and more":      "config.json.new/and/more",
		"a disk of its own":     "lost+found/file",
		"logs without settings": "logs/keeper.log",
	} {
		i := instance.Instance{Name: "test", State: t.TempDir()}
		precious := i.Path(file)
		write(t, precious, `{"auths": {}}`)
		write(t, i.Path("more"), "")
		err := removeState(i)
		if err == nil || !strings.Contains(err.Error(), "LOCALKUBE_STATE") {
			t.Errorf("%s: the error is %v", name, err)
		}
		if _, err := os.Stat(precious); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheStateOfAnInstanceIsRemoved(t *testing.T) {
	for name, fill := range map[string]func(instance.Config){
		"absent": func(c instance.Config) { os.Remove(c.State) },
		"empty":  func(instance.Config) {},
		"an instance": func(c instance.Config) {
			write(t, c.Path("logs", "keeper.log"), "")
			write(t, c.Path("nodes", "node1", "kubelet", "pods", "data"), "")
			if err := c.Write(); err != nil {
				t.Fatal(err)
			}
		},
		"killed before its settings": func(c instance.Config) { write(t, c.ConfigFile()+".new", "{") },
	} {
		c := instance.Config{Instance: instance.Instance{Name: "test", State: t.TempDir()}, Nodes: 3}
		fill(c)
		if err := removeState(c.Instance); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(c.State); !os.IsNotExist(err) {
			t.Errorf("%s: it is still there: %v", name, err)
		}
	}
}
