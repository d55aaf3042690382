// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeApt puts a shell script in the place of apt-get, which finds its directory in $DIR.
func fakeApt(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DIR", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// dpkg runs, so apt-get does not end yet.
func TestAnInterruptLeavesNoPackageHalfInstalled(t *testing.T) {
	dir := fakeApt(t, `trap 'touch "$DIR/asked"' INT; touch "$DIR/begun"; until [ -e "$DIR/asked" ] || [ ! -d "$DIR" ]; do sleep 0.05; done; touch "$DIR/done"`)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- apt(ctx, "", "install", "crun") }()
	waitFor(t, filepath.Join(dir, "begun"))
	interrupt()
	if err := <-ended; err == nil {
		t.Error("the interrupt is forgotten")
	}
	if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
		t.Errorf("apt-get was killed: %v", err)
	}
}

// TestMain is hack/kube, in the place of the tests, where a test starts it in a process group of its own.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_INSTALL") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := apt(ctx, "", "install", "crun")
	stop()
	if err == nil {
		os.Exit(7) // the signal is forgotten
	}
}

// hack/test and hack/demo end the process group of hack/kube, and kill it after their patience.
func TestTheEndOfTheProcessGroupSparesDpkg(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			dir := fakeApt(t, `trap '' INT; touch "$DIR/begun"; until [ -e "$DIR/ended" ] || [ ! -d "$DIR" ]; do sleep 0.05; done; echo Setting up; touch "$DIR/done"`)
			kube := exec.CommandContext(t.Context(), os.Args[0])
			kube.Env = append(os.Environ(), "TEST_INSTALL=true")
			kube.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := kube.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, filepath.Join(dir, "begun"))
			if err := syscall.Kill(-kube.Process.Pid, how); err != nil {
				t.Fatal(err)
			}
			if how == syscall.SIGKILL {
				_ = kube.Wait() // then nobody reads what dpkg prints
			}
			if err := os.WriteFile(filepath.Join(dir, "ended"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			waitFor(t, filepath.Join(dir, "done"))
			if how == syscall.SIGTERM {
				if err := kube.Wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func waitFor(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s", filepath.Base(file))
		}
	}
}

func TestAptGetWaitsForAnother(t *testing.T) {
	dir := fakeApt(t, `echo "$*" >"$DIR/arguments"`)
	if err := apt(t.Context(), "", "install", "crun"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "arguments")); err != nil || !strings.Contains(string(got), "-o DPkg::Lock::Timeout=300 install crun") {
		t.Errorf("the arguments are %q, %v", got, err)
	}
}
