// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package datadir inspects etcd's data directory for programs that run before etcd, and writes the
// notes that they leave on a disk.
package datadir

import (
	"errors"
	"os"
	"path/filepath"
)

// HoldsData reports whether a data directory contains a write-ahead log, so etcd has run
// there. A directory that does not exist, and the name "", hold none.
func HoldsData(dir string) (bool, error) {
	if dir == "" {
		return false, nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, "member", "wal"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if errors.Is(err, os.ErrPermission) {
		return false, foreign(dir, err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".wal" {
			return true, nil
		}
	}
	return false, err
}
