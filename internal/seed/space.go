// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"fmt"
	"syscall"
)

// spare is what is needed beside the data itself: etcd's write-ahead log, which takes
// 64 MB at once, and the program that is left for the other container.
const spare = 128 << 20

// checkSpace fails where a file system has less than this many bytes for us. A system
// that doesn't tell is not asked twice: the write will fail where it is full.
func checkSpace(dir string, need int64, what string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bsize <= 0 {
		return nil //nolint:nilerr // see above
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < need+spare { //nolint:gosec,unconvert // a disk has less than 2^63 bytes; the types differ between systems
		return fmt.Errorf("%s needs %d MiB, and %s has %d MiB free: %w", what, (need+spare)>>20, dir, free>>20, syscall.ENOSPC)
	}
	return nil
}
