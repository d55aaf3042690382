// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// treeOf returns the top of the source tree, from where a page's commands run. Those of doc/tls.md write
// keys beside the script that makes them. They get a tree without such keys, which goes with the test.
func treeOf(t *testing.T, page string) string {
	t.Helper()
	if page != "doc/tls.md" {
		return root
	}
	tree := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "example" {
			err = errors.Join(err, os.Symlink(filepath.Join(top, entry.Name()), filepath.Join(tree, entry.Name())))
		}
	}
	err = errors.Join(err, filepath.WalkDir(filepath.Join(top, "example"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		switch {
		case err != nil:
			return err
		case name == keys:
			return fs.SkipDir // perhaps of another user
		case entry.IsDir():
			return os.Mkdir(filepath.Join(tree, name), 0o755)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tree, name), text, info.Mode().Perm())
	}))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// keys is where example/tls/generate.sh writes keys, unless --dir names another directory.
const keys = "example/tls/certs"

// The page begins without keys, whatever is in the clone, and leaves none there.
func TestTheKeysOfThePageAreNotInTheClone(t *testing.T) {
	_, former := os.Stat(filepath.Join(root, keys))
	tree := treeOf(t, "doc/tls.md")
	if _, err := os.Stat(filepath.Join(tree, keys)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the page begins with keys: %v", err)
	}
	generate := exec.CommandContext(t.Context(), "example/tls/generate.sh", "--no-apply", "--namespace=test")
	generate.Dir = tree
	output, _ := generate.CombinedOutput() // it makes the directory first, with and without openssl
	if _, err := os.Stat(filepath.Join(tree, keys)); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	if _, latter := os.Stat(filepath.Join(root, keys)); (former == nil) != (latter == nil) {
		t.Errorf("the keys in the clone: before %v, after %v", former, latter)
	}
}

func TestTheTreeOfAPageHasAllFiles(t *testing.T) {
	tree := treeOf(t, "doc/tls.md")
	for _, file := range []string{"example/deployment.yaml", "example/rbac/create_role.sh", "example/tls/example-tls-cluster.yaml", "deploy/install.yaml", "go.mod"} {
		want, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(tree, file)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %d bytes, %v, want %d", file, len(got), err, len(want))
		}
	}
}

// All users share /tmp, and whoever creates a name there first can read what others write to it. Nor does
// TMPDIR move it, so what a page leaves there is there at the next run.
func TestNoPageWritesToACommonName(t *testing.T) {
	found, err := allBlocks(root, "sh", "sh fails", "sh local", "sh stage")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range found {
		if strings.Contains(b.text, "/tmp/") {
			t.Errorf("%s: it names a file in /tmp: use $(mktemp -d)", b)
		}
		// treeOf
		if b.page != "doc/tls.md" && strings.Contains(b.text, "tls/generate.sh") && !strings.Contains(b.text, "--dir=") {
			t.Errorf("%s: it leaves keys in the clone: use --dir", b)
		}
	}
}
