// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits raises the host's kernel limits that are too low for several kubelets and
// containerds, and restores them.
package limits

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// wanted are lower bounds. A node needs about ten inotify instances, all of
// them of the same user, and a kernel's default is 128.
var wanted = map[string]int{
	"fs/inotify/max_user_instances": 1024,
	"fs/inotify/max_user_watches":   131072,
}

// Limits are the limits of a host, shared by all instances on it.
type Limits struct {
	// Sys is where the kernel's parameters are.
	Sys string
	// Saved is the file that keeps the values to be put back.
	Saved string
}

// Host returns the limits of this machine.
func Host() Limits {
	return Limits{Sys: "/proc/sys", Saved: "/run/etcd-operator-localkube.limits"}
}

// Raise raises limits that are too low. It keeps the old values until Restore.
func (l Limits) Raise() error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	saved, err := l.read()
	if err != nil {
		return err
	}
	for name, want := range wanted {
		b, err := os.ReadFile(filepath.Join(l.Sys, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read a limit of the kernel: %w", err)
		}
		now := strings.TrimSpace(string(b))
		if n, err := strconv.Atoi(now); err != nil || n >= want {
			continue
		}
		if _, ok := saved[name]; !ok {
			saved[name] = now
		}
		// The note comes before the change: nobody could undo an unknown change.
		if err := l.write(saved); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(l.Sys, name), []byte(strconv.Itoa(want)), 0o644); err != nil {
			return fmt.Errorf("raise %s from %s to %d: %w", name, now, want, err)
		}
	}
	return nil
}

// Restore restores the old values, unless inUse reports that another instance still needs the
// new ones.
func (l Limits) Restore(inUse func() (bool, error)) error {
	if _, err := os.Stat(l.Saved); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if used, err := inUse(); err != nil || used {
		return err
	}
	saved, err := l.read()
	if err != nil {
		return err
	}
	for name, value := range saved {
		if err := os.WriteFile(filepath.Join(l.Sys, name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("put %s back to %s: %w", name, value, err)
		}
	}
	if err := os.Remove(l.Saved); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock keeps two instances from changing the limits at once. Its directory outlives the file.
func (l Limits) lock() (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(l.Saved))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		dir.Close()
		return nil, fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	return func() { dir.Close() }, nil
}

func (l Limits) read() (map[string]string, error) {
	saved := map[string]string{}
	b, err := os.ReadFile(l.Saved)
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &saved); err != nil {
		return nil, fmt.Errorf("decode %s: %w; it holds limits of the kernel to be put back: correct or remove it", l.Saved, err)
	}
	return saved, nil
}

func (l Limits) write(saved map[string]string) error {
	b, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.Saved+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(l.Saved+".new", l.Saved)
}
