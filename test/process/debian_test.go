// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// installer is a script that installs a package, in a process group of its own, and what it printed. Its
// apt-get is a shell script, which finds its directory in $DIR.
func installer(t *testing.T, commands, aptGet string) (dir string, cmd *exec.Cmd, printed *bytes.Buffer) {
	t.Helper()
	library, err := filepath.Abs("../../hack/debian.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte("#!/bin/sh\n"+aptGet), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\nsource "+library+"\n"+commands+"\ndebian /absent shellcheck\necho installed")
	cmd.Env = append(os.Environ(), "DIR="+dir, "TMPDIR="+t.TempDir(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	printed = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = printed, printed
	return dir, cmd, printed
}

func awaitFile(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s", filepath.Base(file))
		}
	}
}

// hack/test ends the process group of a stage, and kills it after its patience. apt-get ignores the
// interrupt while dpkg runs.
func TestTheEndOfAScriptSparesDpkg(t *testing.T) {
	// Under nohup, the scripts would ignore a hangup. A signal that is caught here is not ignored in them.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(caught)
	const aptGet = `trap '' INT; touch "$DIR/begun"; until [ -e "$DIR/ended" ] || [ ! -d "$DIR" ]; do sleep 0.05; done
echo warning >&2; echo Setting up; touch "$DIR/done"`
	for _, c := range []struct {
		name, commands string
		how            syscall.Signal
		code           int // -1: by the signal
	}{
		{"a signal", "", syscall.SIGTERM, -1},
		{"a signal with a trap", "trap 'exit 42' TERM", syscall.SIGTERM, 42},
		{"an interrupt", "trap 'exit 130' INT", syscall.SIGINT, 130},
		{"a hangup", "", syscall.SIGHUP, -1},
		{"a kill", "", syscall.SIGKILL, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, script, printed := installer(t, c.commands, aptGet)
			if err := script.Start(); err != nil {
				t.Fatal(err)
			}
			awaitFile(t, filepath.Join(dir, "begun"))
			for range 2 { // the second one comes in vain too, if the process is still there
				if err := syscall.Kill(-script.Process.Pid, c.how); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
			}
			var err error
			if c.how == syscall.SIGKILL {
				err = script.Wait() // then nobody reads what dpkg prints
			}
			if err := os.WriteFile(filepath.Join(dir, "ended"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.how == syscall.SIGKILL {
				awaitFile(t, filepath.Join(dir, "done"))
			} else {
				err = script.Wait()
			}
			if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
				t.Errorf("the script ended before apt-get: %v", err)
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code {
				t.Errorf("the script ended with %v, and printed %s", err, printed)
			}
		})
	}
}

func TestASignalInterruptsADownload(t *testing.T) {
	dir, script, printed := installer(t, "", `echo "$*" >>"$DIR/calls"; trap 'exit 130' INT; touch "$DIR/begun"; while [ -d "$DIR" ]; do sleep 0.05; done`)
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, filepath.Join(dir, "begun"))
	if err := syscall.Kill(-script.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := script.Wait(); err == nil {
		t.Errorf("the signal is forgotten: %s", printed)
	}
	if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || strings.Count(string(calls), "\n") != 1 {
		t.Errorf("apt-get was called again: %s, %v", calls, err)
	}
}

// The lists of packages are absent on a fresh machine.
func TestAScriptInstallsPackages(t *testing.T) {
	for _, c := range []struct {
		aptGet, printed string
		fails           bool
	}{
		{`touch "$DIR/$$"`, "installed", false},
		{`case $1 in update) touch "$DIR/lists" ;; *) [ -e "$DIR/lists" ] || { echo "E: no lists" >&2; exit 100; } ;; esac`, "installed", false},
		{`[ $1 = update ] || { echo "E: no package" >&2; exit 100; }`, "E: no package", true},
		{`echo "E: no network" >&2; exit 100`, "E: no network", true},
	} {
		_, script, printed := installer(t, "", c.aptGet)
		if err := script.Run(); (err != nil) != c.fails {
			t.Errorf("%s: the script ended with %v", c.aptGet, err)
		}
		if want := "Installing from Debian: shellcheck\n" + c.printed + "\n"; printed.String() != want {
			t.Errorf("%s: printed %q, want %q", c.aptGet, printed, want)
		}
	}
}
