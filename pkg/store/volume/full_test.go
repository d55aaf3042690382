//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// ownMounts makes the test act as the child below.
const ownMounts = "VOLUME_TEST_OWN_MOUNTS"

// inOwnMounts runs the test in a process that mounts what it likes, which ends with
// it: for anybody, where the kernel lets users have namespaces; and for root.
func inOwnMounts(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		test(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

func mount(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestAFullVolumeKeepsWhatItHas(t *testing.T) {
	inOwnMounts(t, func(t *testing.T) {
		dir := t.TempDir()
		mount(t, dir)
		in := openAt(t, dir, "ns")
		put(t, in, "key", "old", map[string]string{"of": "old"})
		for _, key := range []string{"key", "new"} {
			_, err := in.Put(t.Context(), key, store.Upload{Body: io.LimitReader(rand.Reader, 16<<20), Size: 16 << 20})
			if err == nil || !strings.Contains(err.Error(), "the volume is full") || !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, store.ErrFull) {
				t.Errorf("put %s: %v", key, err)
			}
		}
		if found := files(t, dir); len(found) != 3 { // ns, the file, its metadata
			t.Errorf("there are %v", found)
		}
		if got, err := in.Stat(t.Context(), "key"); err != nil || got.Metadata["of"] != "old" {
			t.Errorf("stat: %+v, error %v", got, err)
		}
		if _, err := in.Put(t.Context(), "new", store.Upload{Body: io.LimitReader(rand.Reader, 4<<20), Size: 4 << 20}); err != nil {
			t.Errorf("there is room again, and: %v", err)
		}
	})
}

func TestAReadOnlyVolumeIsRead(t *testing.T) {
	inOwnMounts(t, func(t *testing.T) {
		dir := t.TempDir()
		mount(t, dir)
		writing := openAt(t, dir, "ns")
		put(t, writing, "key", "content", map[string]string{"of": "it"})
		writing.Close()
		if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=8m"); err != nil {
			t.Fatal(err)
		}
		in := openAt(t, dir, "ns")
		if got, err := in.Stat(t.Context(), "key"); err != nil || got.Metadata["of"] != "it" {
			t.Errorf("stat: %+v, error %v", got, err)
		}
		_, err := in.Put(t.Context(), "new", store.Upload{Body: strings.NewReader("x"), Size: 1})
		for what, err := range map[string]error{"put": err, "delete": in.Delete(t.Context(), "key")} {
			if !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "read-only") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := Open(t.Context(), Config{Root: dir, Dir: "other"}); !errors.Is(err, store.ErrDenied) {
			t.Errorf("a directory that can't be made: %v", err)
		}
	})
}
