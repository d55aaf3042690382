// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// inMemory creates a file in memory, and returns a path by which this process can open it
// until it is closed. The SDK only reads files, and credentials must not be written to disks.
func inMemory(name string, content []byte) (path string, closeFile func(), err error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, fmt.Errorf("make a file in memory for %s: %w", name, err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(content); err != nil {
		file.Close()
		return "", nil, fmt.Errorf("write %s into memory: %w", name, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { file.Close() }, nil
}
