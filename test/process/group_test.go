// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// grouped returns a script that runs commands in a group of its own.
func grouped(t *testing.T, commands string) string {
	t.Helper()
	library, err := filepath.Abs("../../hack/process.sh")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script")
	text := "#!/usr/bin/env bash\nset -euo pipefail\nsource " + library + "\nown_group " + script + " \"$@\"\n" + commands + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

// A signal to a script alone, as from a supervisor, ends what the script runs in the foreground.
func TestASignalToAScriptEndsItsGroup(t *testing.T) {
	script := grouped(t, `[[ $* == "one two" && -z ${OWN_GROUP-} ]]; echo "$$"; sleep 600`)
	cmd := exec.CommandContext(t.Context(), script, "one", "two")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || group == cmd.Process.Pid {
		t.Fatalf("the group is %q, and the script %d: %v", line, cmd.Process.Pid, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 143 {
		t.Errorf("the script ended with %v", err)
	}
	if err := syscall.Kill(-group, 0); !errors.Is(err, syscall.ESRCH) {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		t.Errorf("after %v, its group is still there: %v", time.Since(began), err)
	}
}

func TestAScriptExitsAsItsGroupDoes(t *testing.T) {
	var exit *exec.ExitError
	if err := exec.CommandContext(t.Context(), grouped(t, "exit 7")).Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the script ended with %v", err)
	}
}
