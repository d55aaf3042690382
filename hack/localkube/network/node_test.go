// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// A node that lost its power kept its network namespace, and with it its link, for some
// connection that gave up late. It could not be started again: RTNETLINK answers: File
// exists. Needs root, as the local Kubernetes does.
func TestANodeIsAttachedWhereItsFormerLinkIsLeft(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the goroutine, and its namespace with it
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "link add "+bridge+" type bridge"); err != nil {
		t.Fatal(err)
	}
	c := instance.Config{Instance: instance.Instance{Network: netip.MustParsePrefix("10.96.0.0/16")}, Nodes: 1}
	for range 2 {
		node := exec.CommandContext(t.Context(), "sleep", "60")
		node.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Process.Kill(); _ = node.Wait() })
		if err := AttachNode(t.Context(), c, "node1", node.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if !attached("node1") {
			t.Error("there is no link")
		}
	}
}
