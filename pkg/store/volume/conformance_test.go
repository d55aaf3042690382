//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	root := t.TempDir()
	storetest.Run(t, func(t *testing.T) store.Store {
		opened, err := Open(t.Context(), Config{Root: root, Dir: "default"})
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}, storetest.Options{
		Unfinished: func(t *testing.T) []string { return unfinished(t, filepath.Join(root, "default")) },
		Abandon: func(t *testing.T, key string) {
			file := filepath.Join(root, "default", hidden{key: key, id: newID(), kind: uploading}.path())
			if err := os.MkdirAll(filepath.Dir(file), dirMode); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("part"), fileMode); err != nil {
				t.Fatal(err)
			}
		},
		Cannot: map[storetest.Case]string{
			storetest.WrongCredentials: "a directory has no credentials; what a file system refuses is in full_test.go",
			storetest.MissingBucket:    "Open fails for a directory that does not exist: TestAVolumeMustBeThere",
			storetest.DyingServer:      "there is no server: who dies is the operator, which is TestACrashDoesNotMixMetadata",
			storetest.HangingServer:    "there is no server, and no system call on a file ends with a context",
		},
	})
}

// unfinished are uploads, and metadata of nothing.
func unfinished(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, is := parseHidden(name)
		if !is {
			return nil
		}
		if file.kind == metadata {
			if content, err := fs.Stat(files, file.key); err == nil && metadataOf(file.key, content) == file {
				return nil
			}
		}
		found = append(found, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
