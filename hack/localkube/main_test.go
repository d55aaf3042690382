// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
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
