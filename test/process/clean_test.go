// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
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

// stages is hack/test with its own function clean, two lanes and a local Kubernetes. They note what happens
// to them. Each lane ends when both were asked to and the file lanes exists, and hack/kube when kube exists.
const stages = `#!/usr/bin/env bash
set -euo pipefail
source "$ROOT/hack/process.sh"
eval "$(sed -n '/^clean() {/,/^}/p' "$ROOT/hack/test")"
work=$(mktemp -d) printed=false had_dist=true lanes=()
print_unfinished() { printf 'one\n'; awk 'BEGIN { print "two" }'; printf 'three\n'; }
end_tripwire() { echo "tripwire ended" >>notes; }
until_exists() { until [[ -e $1 ]]; do sleep 0.05; done; }
lane() {
	trap - EXIT INT TERM HUP
	trap 'touch "asked.$me"; until_exists asked.1; until_exists asked.2; until_exists lanes; echo "lane $me ended" >>notes; exit' TERM
	local me=$1
	echo "$BASHPID" >"begun.$me"
	sleep 600 &
	wait $!
}
trap clean EXIT
exit_on_signals
touch "$work/up.pages"
for name in 1 2; do
	set -m
	lane "$name" </dev/null &
	lanes+=($!)
	set +m
done
touch begun
while :; do sleep 0.5; done
`

const kubeDown = `#!/usr/bin/env bash
touch asked.kube
until [[ -e kube ]]; do sleep 0.05; done
echo "something to read" >&2
echo "Kubernetes ended" >>notes
`

func TestTheCleanupOfHackTestReachesItsEnd(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"stages": stages, "hack/kube": kubeDown} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	temporary := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "stages"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ROOT="+root, "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = writer, writer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	await := func(name string) {
		t.Helper()
		for {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return
			}
			select {
			case err := <-ended:
				t.Fatalf("ended before there was a file %s: %v", name, err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	// What the script leaves if the test fails.
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		for _, name := range []string{"begun.1", "begun.2"} {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			if group, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && group > 1 {
				_ = syscall.Kill(-group, syscall.SIGKILL)
			}
		}
	}()
	allow := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}

	await("begun")
	await("begun.1")
	await("begun.2")
	// Ctrl-C ends a program such as tee, too, which reads the output.
	_ = reader.Close()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	again := func() { // to all in the foreground, by a person, and to the script, by a supervisor
		time.Sleep(100 * time.Millisecond) // most likely in the middle of a command
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond)
	}
	await("asked.1")
	again()
	allow("lanes")
	await("asked.kube")
	again()
	allow("kube")
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("the script ended with %v", err)
	}
	notes, err := os.ReadFile(filepath.Join(dir, "notes"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"lane 1 ended", "lane 2 ended", "Kubernetes ended", "tripwire ended"} {
		if !strings.Contains(string(notes), want) {
			t.Errorf("not %s, but:\n%s", want, notes)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
