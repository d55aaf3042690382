// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsWrittenWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "note")
	// A crash has left an incomplete file.
	if err := os.WriteFile(name+newSuffix, []byte("half of a longer text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"c-a", "", "c-b"} {
		if err := WriteDurably(name, content); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("wrote %q, read %q: %v", content, got, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v: %v", entries, err)
	}
	if err := WriteDurably(filepath.Join(dir, "missing", "note"), ""); err == nil {
		t.Error("wrote into a directory that does not exist")
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteDurably(filepath.Join(dir, "taken"), "c-a"); err == nil {
		t.Error("replaced a directory")
	}
}
