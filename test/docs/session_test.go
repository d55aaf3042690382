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
	"sync"
	"testing"
	"time"
)

// blockTime bounds a block that hangs. Waits in the pages have bounds of their own. The
// longest block is the demo: 70 s on a quiet machine, and nine minutes on a slow one with
// other tests beside it.
const blockTime = 20 * time.Minute

// session is a shell that runs the blocks.
type session struct {
	t     *testing.T
	dir   string
	stdin io.Writer
	lines *bufio.Reader
	n     int
	// patience bounds a block that hangs.
	patience time.Duration
	said     transcript // what the block has printed so far
}

// transcript is text that one goroutine writes and another one reads.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *transcript) write(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.WriteString(line)
}

// take returns the text, and forgets it.
func (p *transcript) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.text.String()
	p.text.Reset()
	return strings.TrimSpace(text)
}

// done is what the shell prints at the end of a block.
const done = "--- this block is done ---"

// newSession starts the shell at the top of a source tree.
func newSession(t *testing.T, tree string, environment ...string) *session {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc")
	shell.Dir = tree
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
		// The end of each block was checked already.
		stdin.Close()
		_ = shell.Wait()
	})
	return &session{t: t, dir: t.TempDir(), stdin: stdin, lines: bufio.NewReader(stdout), patience: blockTime}
}

// exitCode is the code of a command that failed, as opposed to one that did not end.
type exitCode string

func (e exitCode) Error() string { return "exit code " + string(e) }

// run runs one block and returns its output. A failing command ends the block, and the error
// is its exitCode.
func (s *session) run(b block) (output string, err error) {
	s.n++
	file := filepath.Join(s.dir, fmt.Sprintf("%d.sh", s.n))
	if err := os.WriteFile(file, []byte(strings.TrimSpace(b.text)+"\n"), 0o600); err != nil {
		return "", err
	}
	// The block changes the session, as it would for a person: variables stay. An error ends
	// the block, and not the session.
	_, err = fmt.Fprintf(s.stdin, `trap 'failed=$?; trap - ERR; return $failed' ERR; . %q </dev/null; failed=$?; trap - ERR; echo; echo %q $failed`+"\n", file, done)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), s.patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.read() }()
	select {
	case err := <-ended:
		return s.said.take(), err
	case <-ctx.Done():
		return s.said.take(), fmt.Errorf("not done after %s", s.patience)
	}
}

// read reads until the end of the block.
func (s *session) read() error {
	for {
		line, err := s.lines.ReadString('\n')
		if code, ok := strings.CutPrefix(line, done+" "); ok {
			if code = strings.TrimSpace(code); code != "0" {
				return exitCode(code)
			}
			return nil
		}
		s.said.write(line)
		if err != nil {
			return fmt.Errorf("the shell has ended: %w", err)
		}
	}
}

// A block that must fail passes only if a command fails.
func TestOnlyACommandThatFailsIsAnExitCode(t *testing.T) {
	s := newSession(t, root)
	for _, c := range []struct{ text, output, err string }{
		{"name=value; echo begun", "begun", "<nil>"},
		{"echo $name; (exit 3); echo continues", "value", "exit code 3"},
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

// What a block printed before it hung says which command hangs.
func TestABlockThatHangsShowsItsOutput(t *testing.T) {
	s := newSession(t, root)
	s.patience = time.Second
	output, err := s.run(block{text: "echo begun; sleep 60"})
	if output != "begun" || err == nil || !strings.Contains(err.Error(), "not done after 1s") {
		t.Errorf("printed %q, error %v", output, err)
	}
}
