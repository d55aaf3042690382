//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/ports"
)

// An outsideOperator is the etcd operator's program in a process of its own, outside of
// Kubernetes.
type outsideOperator struct{ pid int }

// startOperator builds the program and runs it until the test ends.
func startOperator(t *testing.T, n *harness.Namespace) outsideOperator {
	t.Helper()
	program := filepath.Join(t.TempDir(), "etcd-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/operator")
	build.Dir, build.Env = n.Root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	address := net.JoinHostPort("127.0.0.1", ports.Free(t, "127.0.0.1", 1)[0])
	cmd := exec.CommandContext(ctx, program, "-kubeconfig="+n.OutsideKubeconfig(), "-operator-image=simulated", "-listen-addr="+address)
	cmd.Env = append(os.Environ(), "MY_POD_NAMESPACE="+n.Name, "MY_POD_NAME=outside")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the operator: %v", err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // SIGTERM ends it
		if text := log.String(); t.Failed() {
			t.Logf("the end of the operator's log:\n%s", text[max(0, len(text)-8000):])
		}
	})
	harness.Wait(t, "operator ready", harness.Settle, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", resp.Status)
		}
		return nil
	})
	return outsideOperator{cmd.Process.Pid}
}

// processor returns the processor time so far.
func (o outsideOperator) processor(t *testing.T) time.Duration {
	t.Helper()
	// The name in parentheses is the second field; see proc_pid_stat(5).
	stat := o.read(t, "stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system, ticks = 14 - 3, 15 - 3, 100
	var sum time.Duration
	for _, i := range []int{user, system} {
		sum += time.Duration(number(t, fields[i])) * time.Second / ticks
	}
	return sum
}

// resident returns the resident memory in bytes.
func (o outsideOperator) resident(t *testing.T) int64 {
	t.Helper()
	return number(t, strings.Fields(o.read(t, "statm"))[1]) * int64(os.Getpagesize())
}

func (o outsideOperator) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", o.pid, name))
	if err != nil {
		t.Fatalf("the operator has ended: %v", err)
	}
	return string(text)
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
