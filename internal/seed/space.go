// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"fmt"
	"syscall"
)

// spare is the space needed beside the data: 64 MB for etcd's write-ahead log, which etcd
// allocates at once, and the program for the other container.
const spare = 128 << 20

// checkSpace fails if a file system has fewer free bytes than needed. If the system does not
// report its free space, the check passes, and a write fails when the disk is full.
func checkSpace(dir string, need int64, what string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bsize <= 0 {
		return nil //nolint:nilerr // see above
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < need+spare { // a disk has less than 2^63 bytes; the types differ between systems
		return fmt.Errorf("%s needs %d MiB, and %s has %d MiB free: %w", what, (need+spare)>>20, dir, free>>20, syscall.ENOSPC)
	}
	return nil
}
