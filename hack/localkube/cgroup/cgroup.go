// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup creates and removes cgroups in all of the machine's hierarchies: the separate
// ones of version 1, the unified one of version 2, or both.
package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/wait"
)

// tryEvery is the time between two attempts to remove a cgroup with dying processes.
const tryEvery = 20 * time.Millisecond

// Root is where the hierarchies are mounted.
const Root = "/sys/fs/cgroup"

// Hierarchies returns the mount points of all hierarchies.
func Hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(Root, "cgroup.procs")); err == nil {
		return []string{Root}, nil
	}
	entries, err := os.ReadDir(Root)
	if err != nil {
		return nil, fmt.Errorf("find the cgroup hierarchies: %w (is %s mounted?)", err, Root)
	}
	var found []string
	for _, e := range entries {
		dir := filepath.Join(Root, e.Name())
		if e.Type()&fs.ModeSymlink != 0 { // cpu -> cpu,cpuacct
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			found = append(found, dir)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no cgroup hierarchy is mounted below %s: a kubelet cannot run here", Root)
	}
	return found, nil
}

// Create makes the cgroup in each hierarchy, with parents.
func Create(group string) error {
	hs, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		if err := create(h, filepath.Join(h, group)); err != nil {
			return err
		}
	}
	return nil
}

// create fills in the cpuset of each level: a new one is empty in version 1,
// and nothing can run in it.
func create(hierarchy, dir string) error {
	if dir == hierarchy {
		return nil
	}
	if err := create(hierarchy, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a cgroup: %w", err)
	}
	if filepath.Base(hierarchy) == "unified" || hierarchy == Root {
		return nil
	}
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		have, err := os.ReadFile(filepath.Join(dir, f))
		if errors.Is(err, fs.ErrNotExist) || len(bytes.TrimSpace(have)) > 0 {
			continue
		}
		parent, err := os.ReadFile(filepath.Join(filepath.Dir(dir), f))
		if err != nil {
			return fmt.Errorf("read the parent's cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), parent, 0o644); err != nil {
			return fmt.Errorf("fill %s of %s: %w", f, dir, err)
		}
	}
	return nil
}

// A weight decides how much of a busy processor a cgroup gets. That of any other cgroup, and of
// each session of processes outside of one, is half of these.
const (
	sharesV1 = "2048" // cpu.shares
	weightV2 = "200"  // cpu.weight
)

// Prefer lets the processes in a cgroup, and below it, run before those of the rest of the
// machine. The nice value of a process does not do that: it only counts within a cgroup.
func Prefer(group string) error {
	hs, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		for file, value := range map[string]string{"cpu.shares": sharesV1, "cpu.weight": weightV2} {
			// Most hierarchies of version 1 are not of the processor. In a cgroup, whoever asks for
			// a file that is missing to be made is refused, so os.WriteFile would not do.
			f, err := os.OpenFile(filepath.Join(h, group, file), os.O_WRONLY, 0)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("prefer the cgroup %s: %w", group, err)
			}
			_, err = f.WriteString(value)
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("prefer the cgroup %s: %w", group, err)
			}
		}
	}
	return nil
}

// Enter moves a process into the cgroup, in each hierarchy. "/" is the root.
func Enter(group string, pid int) error {
	hs, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		procs := filepath.Join(h, group, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("move process %d into cgroup %s: %w", pid, procs, err)
		}
	}
	return nil
}

// Exists reports whether any hierarchy has the cgroup.
func Exists(group string) bool {
	hs, err := Hierarchies()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(hs, func(h string) bool {
		_, err := os.Stat(filepath.Join(h, group))
		return err == nil
	})
}

// List returns the cgroups that begin with a prefix, in any hierarchy.
func List(prefix string) ([]string, error) {
	hs, err := Hierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, h := range hs {
		groups, err := filepath.Glob(filepath.Join(h, prefix) + "*")
		if err != nil {
			return nil, err
		}
		found = append(found, groups...)
	}
	return found, nil
}

// Remove removes the cgroup and those below it. Their processes are dying: it retries until
// they are gone or the context ends.
func Remove(ctx context.Context, group string) error {
	hs, err := Hierarchies()
	if err != nil {
		return err
	}
	for {
		var failed error
		for _, h := range hs {
			failed = errors.Join(failed, removeTree(filepath.Join(h, group)))
		}
		if failed == nil {
			return nil
		}
		if wait.For(ctx, tryEvery) != nil {
			return fmt.Errorf("remove cgroup %s: %w", group, failed)
		}
	}
}

// removeTree removes only directories: the kernel removes a cgroup's files with it.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}
