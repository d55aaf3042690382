// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/checkout"
)

// programs are the paths of servers' programs found so far.
var programs = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// program returns the path of a server's program, and builds it if necessary.
func program(t testing.TB, name string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path, found := programs.paths[name]; found {
		return path
	}
	script, err := buildScript()
	if err != nil {
		t.Fatal(err)
	}
	var messages strings.Builder
	build := exec.CommandContext(t.Context(), script, name)
	build.Stderr = &messages
	build.Cancel = func() error { return build.Process.Signal(syscall.SIGTERM) } // it ends what it has started
	out, err := build.Output()
	if err != nil {
		t.Fatalf("build the server %s by %s: %v\n%s", name, script, err, messages.String())
	}
	path := strings.TrimSpace(string(out))
	programs.paths[name] = path
	return path
}

// buildScript returns the path of hack/stores.
func buildScript() (string, error) {
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "hack", "stores"), nil
}
