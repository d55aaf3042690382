//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
type outsideOperator struct {
	name, address string
	cmd           *exec.Cmd
}

// An outsideProgram is the operator's program, and the rights with which it runs.
type outsideProgram struct {
	n                *harness.Namespace
	path, kubeconfig string
	started          int
}

func buildOperator(t *testing.T, n *harness.Namespace) *outsideProgram {
	t.Helper()
	p := &outsideProgram{n: n, path: filepath.Join(t.TempDir(), "etcd-operator"), kubeconfig: n.OutsideKubeconfig()}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", p.path, "./cmd/operator")
	build.Dir, build.Env = n.Root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	return p
}

// start runs the program until the test ends, and waits until it leads or is a standby.
func (p *outsideProgram) start(t *testing.T) outsideOperator {
	t.Helper()
	p.started++
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	o := outsideOperator{name: fmt.Sprint("outside-", p.started), address: net.JoinHostPort("127.0.0.1", ports.Free(t, "127.0.0.1", 1)[0])}
	o.cmd = exec.CommandContext(ctx, p.path, "-kubeconfig="+p.kubeconfig, "-operator-image=simulated", "-listen-addr="+o.address)
	o.cmd.Env = append(os.Environ(), "MY_POD_NAMESPACE="+p.n.Name, "MY_POD_NAME="+o.name)
	o.cmd.Stdout, o.cmd.Stderr = &log, &log
	o.cmd.Cancel = func() error { return o.cmd.Process.Signal(syscall.SIGTERM) }
	o.cmd.WaitDelay = 10 * time.Second
	if err := o.cmd.Start(); err != nil {
		t.Fatalf("start the operator: %v", err)
	}
	t.Cleanup(func() {
		stop()
		_ = o.cmd.Wait() // a signal ends it
		if text := log.String(); t.Failed() {
			t.Logf("the end of the log of %s:\n%s", o.name, text[max(0, len(text)-8000):])
		}
	})
	harness.Wait(t, "operator ready", harness.Settle, func(ctx context.Context) error {
		_, err := o.get(ctx, "/readyz")
		return err
	})
	return o
}

// get asks the operator by HTTP.
func (o outsideOperator) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.address+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, resp.Status)
	}
	return string(text), err
}

// kill ends the process at once: it releases nothing.
func (o outsideOperator) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatalf("kill the operator: %v", err)
	}
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

// peakFromNow makes peak forget what was before.
func (o outsideOperator) peakFromNow(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", o.cmd.Process.Pid), []byte("5"), 0); err != nil { // proc(5)
		t.Fatal(err)
	}
}

// peak returns the most resident memory in bytes.
func (o outsideOperator) peak(t *testing.T) int64 {
	t.Helper()
	_, rest, _ := strings.Cut(o.read(t, "status"), "VmHWM:")
	kibibytes, _, _ := strings.Cut(rest, " kB")
	return number(t, strings.TrimSpace(kibibytes)) << 10
}

func (o outsideOperator) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", o.cmd.Process.Pid, name))
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
