// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCloneSharesContentsButNotDatabases(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	for name, mode := range map[string]os.FileMode{"blobs/sha256/abc": 0o444, "meta.db": 0o644, "fs/bin/su": 0o755 | os.ModeSetuid} {
		file := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../fs/bin/su", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(from, "fs"), 0o1777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := Clone(from, to); err != nil {
		t.Fatal(err)
	}
	for name, shared := range map[string]bool{"blobs/sha256/abc": true, "fs/bin/su": true, "meta.db": false} {
		a, err := os.Stat(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.Stat(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(a, b) != shared || a.Mode() != b.Mode() || a.Size() != b.Size() {
			t.Errorf("%s: shared %v, modes %s and %s", name, os.SameFile(a, b), a.Mode(), b.Mode())
		}
	}
	if target, err := os.Readlink(filepath.Join(to, "link")); err != nil || target != "../fs/bin/su" {
		t.Errorf("link: %q, %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(to, "fs")); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
}
