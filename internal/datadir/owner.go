// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// foreign explains why the data in a directory can't be read, if another user owns it. The
// operator reads the owner from this text (pkg/manifest).
func foreign(dir string, err error) error {
	var deepest fs.FileInfo
	for _, path := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "member"), filepath.Join(dir, "member", "wal")} {
		info, statErr := os.Stat(path)
		if statErr != nil {
			break
		}
		deepest = info
	}
	if deepest == nil {
		return err
	}
	owner, ok := deepest.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Getuid() {
		return err
	}
	return fmt.Errorf("the data in %s belongs to user %d and group %d, and this pod runs as user %d: the operator recreates the pod as that user, "+
		"unless spec.pod.securityContext names another: %w", dir, owner.Uid, owner.Gid, os.Getuid(), err)
}
