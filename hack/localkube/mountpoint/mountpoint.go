// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mountpoint makes and removes directories that nodes mount their own directories on.
// The nodes of all instances share these mount points, each with a mount namespace of its own.
package mountpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Bind mounts a directory at a mount point, in the current mount namespace. It creates both.
func Bind(dir, at string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return locked(at, unix.LOCK_SH, func() error {
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(dir, at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", dir, at, err)
		}
		return nil
	})
}

// Remove removes a mount point, unless it contains something or a process sees a mount there.
// With the directory, the kernel would remove the mounts of all namespaces.
func Remove(at string) error {
	// It takes a while to look at all processes, and an instance can start meanwhile.
	return locked(at, unix.LOCK_EX, func() error {
		used, err := mounted(at)
		if used || err != nil {
			return err
		}
		err = unix.Rmdir(at)
		if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EBUSY) {
			return nil
		}
		return fmt.Errorf("remove %s: %w", at, err)
	})
}

// mounted reports whether a process of this machine sees a mount at a mount point.
func mounted(at string) (bool, error) {
	tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		return false, err
	}
	for _, table := range tables {
		// Processes may end meanwhile; an ended one mounts nothing.
		if b, err := os.ReadFile(table); err == nil && bytes.Contains(b, []byte(" "+at+" ")) {
			return true, nil
		}
	}
	return false, nil
}

// locked calls a function while it holds the lock of the parent directory. A lock file would
// stay behind.
func locked(at string, how int, do func() error) error {
	parent, err := os.Open(filepath.Dir(at))
	if err != nil {
		return err
	}
	defer parent.Close() // releases the lock
	for {
		err := unix.Flock(int(parent.Fd()), how)
		if err == nil {
			return do()
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("lock %s: %w", parent.Name(), err)
		}
	}
}
