// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStatIsReadWhateverTheName(t *testing.T) {
	stat := "42 (a) b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 0 0"
	start, state, err := parseStat(stat)
	if err != nil || start != 777 || state != "S" {
		t.Errorf("got %d, %s, %v", start, state, err)
	}
	if _, _, err := parseStat("42 (a) S 1"); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestProcessIsKnownUntilItEnds(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !Alive(p) {
		t.Error("it should be alive")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Wait(ended, p); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for it with a context that ended: %v", err)
	}
	other := p
	other.Start++
	if err := Signal(other, unix.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling another process with its ID: %v", err)
	}
	if err := Signal(p, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := Wait(t.Context(), p); err != nil {
		t.Error(err)
	}
	if Alive(p) {
		t.Error("it is dead, if not collected, and counts as alive")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if err := Wait(t.Context(), p); err != nil {
		t.Errorf("waiting for one that is gone: %v", err)
	}
}

func TestThisProcessIsAlive(t *testing.T) {
	p, err := Identify(os.Getpid())
	if err != nil || !Alive(p) {
		t.Errorf("%+v, %v", p, err)
	}
}
