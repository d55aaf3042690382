// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProcess makes the test binary a process that ends cleanly on SIGTERM, as etcd does.
const asProcess = "RUN_AS_PROCESS"

func endOnSIGTERM() (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Stdout.WriteString("ready\n")
	select {
	case <-ctx.Done():
		return 0
	case <-time.After(time.Minute): // the test is gone
		return 1
	}
}

// process starts a process of a name.
func process(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), asProcess+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%s starts with %q: %v", name, line, err)
	}
	return cmd
}

type writer func([]byte) (int, error)

func (w writer) Write(text []byte) (int, error) { return w(text) }

func TestStopEndsEtcd(t *testing.T) {
	etcd := process(t, "etcd")
	ended := make(chan error, 1)
	go func() { ended <- etcd.Wait() }()
	var out bytes.Buffer
	// After the end of etcd, the first process, nothing more is printed.
	before := writer(func(text []byte) (int, error) {
		select {
		case err := <-ended:
			t.Errorf("etcd has ended before the text: %v", err)
			ended <- err
		case <-time.After(300 * time.Millisecond):
		}
		return out.Write(text)
	})
	if err := stop(etcd.Process.Pid, before); err != nil || !strings.Contains(out.String(), "with its data") {
		t.Errorf("it prints %q: %v", &out, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("etcd does not end cleanly: %v", err)
	}
	if err := stop(etcd.Process.Pid, &out); err == nil || !strings.Contains(err.Error(), "look at process") {
		t.Errorf("of a process that is gone: %v", err)
	}
}

// The first process of a container may be the pause program of its pod, or a launcher that waits.
func TestStopEndsNothingElse(t *testing.T) {
	for name, want := range map[string]string{
		"pause":         "is pause, not etcd",
		"etcd-launcher": "etcd has not started here",
		"etcdctl":       "is etcdctl, not etcd",
	} {
		other := process(t, name)
		var out bytes.Buffer
		if err := stop(other.Process.Pid, &out); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: it prints %q: %v", name, &out, err)
		}
		if err := other.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s has ended: %v", name, err)
		}
		if err := other.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := other.Wait(); err == nil || other.ProcessState.Success() {
			t.Errorf("%s had ended by itself", name)
		}
	}
}

// The tests run in no container whose first process is etcd.
func TestStopConcernsTheFirstProcess(t *testing.T) {
	if code, out := launcher(t, nil, "stop"); code != exitFailed || !strings.Contains(out, "stop: process 1 is ") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := launcher(t, nil, "stop", "2"); code != exitUsage || !strings.Contains(out, "etcd-launcher stop") {
		t.Errorf("with an argument: exit code %d: %s", code, out)
	}
}
