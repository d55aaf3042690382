// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asLauncher makes the test binary the program itself.
const asLauncher = "RUN_AS_LAUNCHER"

func TestMain(m *testing.M) {
	if os.Getenv(asLauncher) != "" {
		main()
	}
	if os.Getenv(asProcess) != "" {
		os.Exit(endOnSIGTERM())
	}
	os.Exit(m.Run())
}

// launcher runs the program, and returns its exit code and its output.
func launcher(t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asLauncher+"=1", "MY_POD_IP="), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestTheLauncherBecomesEtcd(t *testing.T) {
	code, out := launcher(t, []string{"ETCD_X=y"}, "launch", "-name=localhost", "--", "/bin/sh", "-c", `echo "$0 $1 $ETCD_X ${MEMBER_STARTED-none}"; exit 7`, "a", "--b")
	if code != 7 || !strings.Contains(out, "localhost to resolve") || !strings.HasSuffix(out, "a --b y none\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestTheNoteOfTheMemberIsNotForEtcd(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "member", "wal", "0.wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"launch", "-name=x", "-skip-name", "-data-dir=" + data, "--", "/bin/sh", "-c", `echo "${MEMBER_STARTED-none}"`}
	if code, out := launcher(t, []string{"MEMBER_STARTED=8e9e05c52164694d"}, args...); code != 0 || out != "none\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	args[3] = "-data-dir=" + t.TempDir()
	if code, out := launcher(t, []string{"MEMBER_STARTED=8e9e05c52164694d"}, args...); code != 1 || !strings.Contains(out, "holds no data") {
		t.Errorf("etcd starts without its data: exit code %d: %s", code, out)
	}
}

// The operator learns from the exit code whether etcd may have run.
func TestTheExitCodeTellsWhetherEtcdHasRun(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"the wait has ended":        {"launch -name=no-such-host.invalid -timeout=1ms -- /bin/true", 75, "launch: gave up"},
		"there is no etcd":          {"launch -name=x -skip-name -- /no/etcd", 1, "start etcd: no such file or directory"},
		"no command":                {"launch -name=x --", 2, "the command of etcd are missing"},
		"no separator":              {"launch -name=x", 2, "the command of etcd are missing"},
		"a wrong flag":              {"launch -nonsense -- /bin/true", 2, "flag provided but not defined"},
		"the init container":        {"check-dns -name=localhost", 0, "localhost to resolve"},
		"its wait has ended":        {"check-dns -name=no-such-host.invalid -timeout=1ms", 1, "check-dns: gave up"},
		"its flags are missing":     {"check-dns", 2, "-name is missing"},
		"help":                      {"check-dns -h", 0, "-skip-name"},
		"no subcommand":             {"", 2, "usage:"},
		"another":                   {"etcd", 2, "usage:"},
		"the program has no target": {"check-dns -name=x -skip-name -leave=/no/such/directory/etcd-launcher", 1, "copy the program"},
	} {
		if code, out := launcher(t, nil, strings.Fields(c.args)...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, c.code, out)
		}
	}
}

func TestTheInitContainerLeavesTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "etcd-launcher")
	for range 2 { // the pod's containers may start again
		if code, out := launcher(t, nil, "check-dns", "-name=x", "-skip-name", "-leave="+file); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), file, "launch", "-name=x", "-skip-name", "--", "/bin/echo", "it runs")
	cmd.Env = append(os.Environ(), asLauncher+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "it runs\n" {
		t.Errorf("%v: %s", err, out)
	}
	if files, err := os.ReadDir(filepath.Dir(file)); err != nil || len(files) != 1 {
		t.Errorf("it leaves %v: %v", files, err)
	}
}
