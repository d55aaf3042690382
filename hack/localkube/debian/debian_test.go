// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// dpkg runs while apt-get ignores the interrupt.
func TestAnInterruptLeavesNoPackageHalfInstalled(t *testing.T) {
	dir := fakeApt(t, `trap '' INT; touch "$DIR/begun"; sleep 0.5; touch "$DIR/done"`)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				interrupt()
			}
		}
	}()
	if err := apt(ctx, "", "install", "crun"); err == nil {
		t.Error("the interrupt is forgotten")
	}
	if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
		t.Errorf("apt-get was killed: %v", err)
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
