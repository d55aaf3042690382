// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"testing"
)

func TestAStoppedProcessDoesNotRun(t *testing.T) {
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	}()
	if running, err := runs(busy.Process.Pid); err != nil || !running {
		t.Errorf("before: runs %v, %v", running, err)
	}
	if err := Stop(busy.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if running, err := runs(busy.Process.Pid); err != nil || running {
		t.Errorf("after: runs %v, %v", running, err)
	}
	if err := Stop(1 << 30); err == nil {
		t.Error("a process that does not exist was stopped")
	}
}
