// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build smoke

package smoke

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/slowdisk"
)

// mounter makes this program the one that mounts a slow disk.
const mounter = "SLOWDISK_TEST_MOUNTER"

// The mount is in a namespace of its own, which ends with the program that serves it. Nobody could
// remove the directory of a dead mount.
func TestFsyncsTakeAsLongAsOneWants(t *testing.T) {
	if os.Getenv(mounter) != "" {
		fsyncsTakeAsLongAsOneWants(t)
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), mounter+"=yes")
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fsyncsTakeAsLongAsOneWants(t *testing.T) {
	t.Helper()
	disk, shown, delays := t.TempDir(), t.TempDir(), t.TempDir()
	if err := slowdisk.Mount(disk, shown, delays); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(shown, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if mounts, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(os.Getppid()), "mountinfo")); err != nil || strings.Contains(string(mounts), shown) {
		t.Errorf("others see the mount, %v", err)
	}
	if err := os.MkdirAll(filepath.Join(shown, "pod", "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(shown, "pod", "data", "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	write := func(text string) chan time.Duration {
		done := make(chan time.Duration, 1)
		go func() {
			began := time.Now()
			_, err := file.WriteString(text)
			if err := errors.Join(err, file.Sync()); err != nil {
				t.Error(err)
			}
			done <- time.Since(began)
		}()
		return done
	}
	delay := func(takes time.Duration) {
		if err := slowdisk.SetDelay(delays, "pod", takes); err != nil {
			t.Fatal(err)
		}
	}
	<-write("a")
	const slow = 300 * time.Millisecond
	delay(slow)
	if took := <-write("b"); took < slow {
		t.Errorf("it took %s", took)
	}
	delay(time.Hour)
	hangs := write("c")
	select {
	case <-hangs:
		t.Error("it did not hang")
	case <-time.After(slow):
	}
	// Who reads meanwhile is not kept waiting.
	if _, err := os.ReadFile(filepath.Join(shown, "pod", "data", "log")); err != nil {
		t.Error(err)
	}
	delay(0)
	<-hangs
	if text, err := os.ReadFile(filepath.Join(disk, "pod", "data", "log")); err != nil || string(text) != "abc" {
		t.Errorf("the disk holds %q, %v", text, err)
	}
}
