// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/wait"
)

// lock makes this the only command that changes the instance. unlock deletes the file, so that
// nothing is left of an instance that is down.
func (a *App) lock() (unlock func(), err error) {
	path := a.Instance.Lock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			holder, _ := os.ReadFile(path)
			f.Close()
			return nil, fmt.Errorf("another command is changing this local Kubernetes (%s): wait until it is done, or use another instance with LOCALKUBE_NAME", strings.TrimSpace(string(holder)))
		}
		if !sameFile(f, path) { // its former holder has removed it
			f.Close()
			continue
		}
		err = f.Truncate(0)
		if err == nil {
			_, err = fmt.Fprintf(f, "process %d: %s\n", os.Getpid(), strings.Join(os.Args[1:], " "))
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return func() { os.Remove(path); f.Close() }, nil
	}
}

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// lockEvery is the time between two attempts to lock the cache.
const lockEvery = 300 * time.Millisecond

// lockCache waits until no other process builds.
func (a *App) lockCache(ctx context.Context) (unlock func(), err error) {
	dir := filepath.Join(a.Cache, "localkube")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if !said {
			a.say("Waiting for another build to end")
			said = true
		}
		if err := wait.For(ctx, lockEvery); err != nil {
			f.Close()
			return nil, err
		}
	}
}
