// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// temporary is a script that runs with a TMPDIR of its own.
type temporary struct {
	*testing.T
	*exec.Cmd
	dir    string
	stdout *bufio.Reader
}

func startTemporary(t *testing.T, script string, variables ...string) temporary {
	t.Helper()
	s := temporary{T: t, Cmd: exec.CommandContext(t.Context(), script), dir: t.TempDir()}
	s.Env = append(append(os.Environ(), "TMPDIR="+s.dir), variables...)
	stdout, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdout = bufio.NewReader(stdout)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s temporary) line() string {
	s.Helper()
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (s temporary) end() {
	s.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
}

// leavesNothing waits for the end of the script.
func (s temporary) leavesNothing(code int) {
	s.Helper()
	if _, err := io.Copy(io.Discard, s.stdout); err != nil {
		s.Error(err)
	}
	var exit *exec.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitCode() != code {
		s.Errorf("the script ended with %v", err)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		s.Errorf("the script leaves %v, %v", left, err)
	}
}

// Programs that a signal ends remove nothing: go leaves what it builds, and a test its directories.
func TestTemporaryFilesEndWithTheGroup(t *testing.T) {
	s := startTemporary(t, grouped(t, `mktemp; sleep 600`))
	if file := s.line(); !strings.HasPrefix(file, s.dir+"/") {
		t.Errorf("a temporary file is %s, and TMPDIR was %s", file, s.dir)
	}
	s.end()
	s.leavesNothing(143)
}

func TestTemporaryFilesEndAfterAFailure(t *testing.T) {
	startTemporary(t, grouped(t, `mktemp; exit 7`)).leavesNothing(7)
}

// A person presses Ctrl-C again, and timeout(1) always sends two signals.
func TestASecondSignalLeavesNothing(t *testing.T) {
	s := startTemporary(t, grouped(t, `trap 'mktemp; echo asked; sleep 1; exit' TERM; mktemp; sleep 600 & wait`))
	s.line()
	s.end()
	for s.line() != "asked" {
	}
	s.end()
	s.leavesNothing(143)
}

// Programs that run as another user find the directory as open as /tmp.
func TestTemporaryFilesAreForAllUsers(t *testing.T) {
	s := startTemporary(t, grouped(t, `stat -c %a "$TMPDIR"; exit 7`))
	if mode := s.line(); mode != "1777" {
		t.Errorf("the mode is %s", mode)
	}
	s.leavesNothing(7)
}

// Paths of sockets are at most 107 bytes long.
func TestTheDirectoryOfTemporaryFilesHasAShortName(t *testing.T) {
	s := startTemporary(t, grouped(t, `echo "$TMPDIR"; exit 7`))
	if added := strings.TrimPrefix(s.line(), s.dir); len(added) > 11 || filepath.Dir(added) != "/" {
		t.Errorf("the group adds %s to TMPDIR", added)
	}
	s.leavesNothing(7)
}

// Each of these scripts runs go sooner or later. Here it hangs.
func TestNothingIsLeftOfAScriptThatRunsGo(t *testing.T) {
	for _, script := range []string{"bench", "chaos", "e2e", "localkube-smoke", "mutants", "simulate"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			fake := "#!/bin/bash\nmktemp >/dev/null\necho $$ >" + bin + "/partial\nmv " + bin + "/partial " + bin + "/pid\nexec sleep 600\n"
			if err := os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o700); err != nil {
				t.Fatal(err)
			}
			s := startTemporary(t, filepath.Join("../../hack", script), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+t.TempDir(), "E2E_PROGRAMS=")
			var announced []byte
			for begin := time.Now(); len(announced) == 0; time.Sleep(10 * time.Millisecond) {
				announced, _ = os.ReadFile(filepath.Join(bin, "pid"))
				if time.Since(begin) > time.Minute {
					s.end()
					t.Fatal("it does not run go")
				}
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(announced)))
			if err != nil {
				t.Fatal(err)
			}
			s.end()
			s.leavesNothing(143)
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Errorf("go is still there: %v", err)
			}
		})
	}
}
