// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPinnedVersionIsFound(t *testing.T) {
	mod := []byte("module x\n\ngo 1.26\n\nrequire k8s.io/kubernetes v1.36.3 // indirect\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.6.16\n\tgo.etcd.io/etcd/server/v3x v0.0.1\n)\n")
	for module, want := range map[string]string{
		"k8s.io/kubernetes":         "v1.36.3",
		"go.etcd.io/etcd/server/v3": "v3.6.16",
	} {
		if got, err := pinned(mod, module); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %s", module, got, err, want)
		}
	}
	if got, err := pinned(mod, "etcd.io/etcd/server/v3"); err == nil {
		t.Errorf("a module that is not required has version %s", got)
	}
}

func TestEveryComponentIsPinned(t *testing.T) {
	b := Builder{Pins: filepath.Join("..", "pins"), Cache: t.TempDir()}
	minors, err := b.Minors()
	if err != nil || len(minors) == 0 {
		t.Fatalf("minor versions of Kubernetes: %q, %v", minors, err)
	}
	for _, b.Kubernetes = range append(minors, "") {
		for _, c := range b.components() {
			built, err := b.locate(c, "go1.26.8")
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
				continue
			}
			if !strings.HasPrefix(built.Version, "v") || complete(c, built.Dir) {
				t.Errorf("%s: %+v", c.Name, built)
			}
			if c.Name == Kubernetes && !strings.HasPrefix(built.Version, "v"+b.Kubernetes) {
				t.Errorf("%s.mod pins Kubernetes %s", b.Kubernetes, built.Version)
			}
		}
	}
}

func TestChangedPinIsBuiltAgain(t *testing.T) {
	pins := t.TempDir()
	write := func(file, content string) {
		t.Helper()
		path := filepath.Join(pins, "thing", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	thing := Component{Name: "thing", Module: "example.com/thing"}
	b := Builder{Pins: pins, Cache: t.TempDir()}
	dirs := map[string]bool{}
	locate := func(goVersion string) {
		t.Helper()
		built, err := b.locate(thing, goVersion)
		if err != nil {
			t.Fatal(err)
		}
		dirs[built.Dir] = true
	}
	write("go.mod", "require example.com/thing v1.0.0\n")
	write("go.sum", "")
	locate("go1.26.8")
	locate("go1.26.8")
	locate("go1.27.0")
	write("go.sum", "example.com/thing v1.0.0 h1:other\n")
	locate("go1.26.8")
	write("go.mod", "require example.com/thing v1.0.1\n")
	locate("go1.26.8")
	write("program/main.go", "package main\n")
	locate("go1.26.8")
	if len(dirs) != 5 {
		t.Errorf("5 different inputs gave %d directories: %v", len(dirs), dirs)
	}
}

func TestProgramsAreFoundUnderTheNameThatGoGivesThem(t *testing.T) {
	for pkg, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kubelet": "kubelet",
		"go.etcd.io/etcd/server/v3":     "server",
		"github.com/coredns/coredns":    "coredns",
	} {
		if got := producedName(pkg); got != want {
			t.Errorf("%s: got %s, want %s", pkg, got, want)
		}
	}
}
