// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestImageIsNamedAfterItsVersion(t *testing.T) {
	for version, want := range map[string][]string{
		"v1.2.3":      {"docker.io/etcd-operator/etcd-operator:v1.2.3"},
		"v1.0.0-dev":  {"docker.io/etcd-operator/etcd-operator:v1.0.0-dev", "docker.io/etcd-operator/etcd-operator:v1.0.0"},
		"v1.0.0-rc.1": {"docker.io/etcd-operator/etcd-operator:v1.0.0-rc.1", "docker.io/etcd-operator/etcd-operator:v1.0.0"},
	} {
		if got := imageNames(version); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}

func TestVersionIsReadFromTheSource(t *testing.T) {
	root := t.TempDir()
	if got := sourceVersion(root); got != "v0.0.0-unversioned" {
		t.Errorf("without a source: %s", got)
	}
	dir := filepath.Join(root, "internal", "version")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		"package version\n\nvar (\n\t// Version is.\n\tVersion = \"v1.4.0\"\n\tGitSHA = \"x\"\n)\n",
		"package version\n\nvar Version = \"1.4.0\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "version.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := sourceVersion(root); got != "v1.4.0" {
			t.Errorf("%q: got %s", source, got)
		}
	}
}
