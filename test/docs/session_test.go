//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// blockTime bounds one block. Waits in the pages have bounds of their own; this is
// for what hangs. The longest block is the demo: 70 s on a quiet machine, and over five
// minutes on a slow one with other tests beside it.
const blockTime = 10 * time.Minute

// session is a shell at the top of the source tree into which blocks are typed.
type session struct {
	t     *testing.T
	dir   string
	stdin io.Writer
	lines *bufio.Reader
	n     int
}

// done is what the shell prints when a block is through.
const done = "--- this block is done ---"

func newSession(t *testing.T, environment ...string) *session {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc")
	shell.Dir = root
	shell.Env = append(os.Environ(), environment...)
	shell.WaitDelay = 5 * time.Second
	stdin, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	shell.Stderr = shell.Stdout
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// How it ended was judged block by block.
		stdin.Close()
		_ = shell.Wait()
	})
	return &session{t: t, dir: t.TempDir(), stdin: stdin, lines: bufio.NewReader(stdout)}
}

// exitCode is that of a command that failed, as opposed to one that did not end.
type exitCode string

func (e exitCode) Error() string { return "exit code " + string(e) }

// run runs one block and returns what it prints. A command that fails ends the block,
// and the error is its exitCode.
func (s *session) run(b block) (output string, err error) {
	s.n++
	file := filepath.Join(s.dir, fmt.Sprintf("%d.sh", s.n))
	if err := os.WriteFile(file, []byte(strings.TrimSpace(b.text)+"\n"), 0o600); err != nil {
		return "", err
	}
	// The block changes the session, as it would for a person: variables stay. An
	// error ends the block, and not the session.
	_, err = fmt.Fprintf(s.stdin, `trap 'failed=$?; trap - ERR; return $failed' ERR; . %q </dev/null; failed=$?; trap - ERR; echo; echo %q $failed`+"\n", file, done)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), blockTime)
	defer cancel()
	type result struct {
		output string
		err    error
	}
	results := make(chan result, 1)
	go func() {
		text, err := s.read()
		results <- result{text, err}
	}()
	select {
	case r := <-results:
		return r.output, r.err
	case <-ctx.Done():
		return "", fmt.Errorf("not done after %s", blockTime)
	}
}

func (s *session) read() (string, error) {
	var text strings.Builder
	for {
		line, err := s.lines.ReadString('\n')
		if code, ok := strings.CutPrefix(line, done+" "); ok {
			if code = strings.TrimSpace(code); code != "0" {
				err = exitCode(code)
			}
			return strings.TrimSpace(text.String()), err
		}
		text.WriteString(line)
		if err != nil {
			return text.String(), fmt.Errorf("the shell has ended: %w", err)
		}
	}
}

// A block that must fail passes for nothing but a command that fails.
func TestOnlyACommandThatFailsIsAnExitCode(t *testing.T) {
	s := newSession(t)
	for _, c := range []struct{ text, output, err string }{
		{"name=value; echo begun", "begun", "<nil>"},
		{"echo $name; (exit 3); echo goes on", "value", "exit code 3"},
		{"true", "", "<nil>"},
		{"exit 0", "", "the shell has ended: EOF"},
	} {
		output, err := s.run(block{text: c.text})
		if output != c.output || fmt.Sprint(err) != c.err {
			t.Errorf("%s: printed %q, error %v, want %q and %s", c.text, output, err, c.output, c.err)
		}
		var code exitCode
		if failed := strings.HasPrefix(c.err, "exit code"); errors.As(err, &code) != failed {
			t.Errorf("%s: %v counts as a command that failed: %t", c.text, err, !failed)
		}
	}
}
