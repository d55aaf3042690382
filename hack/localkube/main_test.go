// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/localkube/keeper"
)

func TestTheProgramsOfAClusterHaveAUmaskOfTheirOwn(t *testing.T) {
	callers := syscall.Umask(0o077)
	defer syscall.Umask(callers)
	run(t.Context(), []string{keeper.Role, "an argument is missing"})
	if got := syscall.Umask(0o077); got != 0o022 {
		t.Errorf("the umask is %03o", got)
	}
}

// A person closes the terminal, and nohup(1) makes that no reason to end.
func TestACommandEndsInOrderWhenTheTerminalGoes(t *testing.T) {
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	if !slices.Contains(interrupts(), os.Signal(syscall.SIGHUP)) {
		t.Error("SIGHUP kills a command")
	}
	signal.Ignore(syscall.SIGHUP)
	if slices.Contains(interrupts(), os.Signal(syscall.SIGHUP)) {
		t.Error("SIGHUP ends a command that shall ignore it")
	}
}
