// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// An earlier operator ran etcd as another user, and the volume ignores fsGroup.
func TestDataOfAnotherUserIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
		if _, err := HoldsData(dir); err == nil {
			t.Error("data that can't be read counts as none")
		}
		return
	}
	if err := os.Chown(dir, 12379, 100); err != nil {
		t.Fatal(err)
	}
	// This thread alone loses root's rights to the files of others, and ends with the goroutine.
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var rights [2]unix.CapUserData
		if err := unix.Capget(&header, &rights[0]); err != nil {
			ended <- err
			return
		}
		rights[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
		if err := unix.Capset(&header, &rights[0]); err != nil {
			ended <- err
			return
		}
		_, err := HoldsData(dir)
		ended <- err
	}()
	err := <-ended
	if err == nil || !strings.Contains(err.Error(), "belongs to user 12379 and group 100, and this pod runs as user 0") {
		t.Errorf("%v", err)
	}
}
