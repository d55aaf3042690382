// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package datadir looks into etcd's data directory for those who run before etcd.
package datadir

import (
	"errors"
	"os"
	"path/filepath"
)

// HoldsData tells whether etcd was here before: whether there is a write-ahead log.
// A directory that does not exist, and the name "", hold none.
func HoldsData(dir string) (bool, error) {
	if dir == "" {
		return false, nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, "member", "wal"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".wal" {
			return true, nil
		}
	}
	return false, err
}
