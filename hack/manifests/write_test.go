// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOnlyWhatDiffersIsWritten(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "a", "b.yaml")
	long := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{"first", "second"} {
		if err := write(root, file{"a/b.yaml", []byte(text)}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
		if err := write(root, file{"a/b.yaml", []byte(text)}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text || !info.ModTime().Equal(long) {
			t.Errorf("%q: %q, written at %s, %v", text, got, info.ModTime(), err)
		}
	}
}
