//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// child returns this test binary as a process of its own, which does the work of a variable and nothing else.
func child(t *testing.T, variable string, order any) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	return cmd
}
