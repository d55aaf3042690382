// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/test/ports"
	"github.com/etcd-operator/etcd-operator/test/process"
)

// Options of a server.
type Options struct {
	// IP to listen on. Default: 127.0.0.1. Pods reach a server on an address of the machine's
	// bridge.
	IP string
}

// startTime bounds the time until a server answers.
const startTime = 2 * time.Minute

// Server is a server that runs until the test ends.
type Server struct {
	// Endpoint is its URL, without a slash at its end.
	Endpoint string
	// Data is the directory of its data.
	Data string

	ip, port string
	health   string // path that answers 200 when the server is ready
	command  func(context.Context) *exec.Cmd

	log     *os.File
	running *exec.Cmd
	exited  chan struct{} // closed when running has exited
}

// start starts a server. command returns the command line for an ip, a port and Data.
func start(t testing.TB, s *Server, options Options, command func(context.Context) *exec.Cmd) {
	t.Helper()
	s.ip, s.Data, s.command = options.IP, t.TempDir(), command
	if s.ip == "" {
		s.ip = "127.0.0.1"
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	s.log = log
	t.Cleanup(func() {
		s.Kill(t)
		if t.Failed() {
			t.Logf("the end of the log of the server at %s:\n%s", s.Endpoint, s.tail())
		}
		s.log.Close()
	})
	// Another process may take the port before the server does.
	for attempt := 1; ; attempt++ {
		s.port = ports.Free(t, s.ip, 1)[0]
		s.Endpoint = "http://" + net.JoinHostPort(s.ip, s.port)
		err := s.run(t)
		if err == nil {
			return
		}
		s.Kill(t)
		if attempt == 3 {
			t.Fatalf("start a server at %s: %v\n%s", s.Endpoint, err, s.tail())
		}
	}
}

// run starts the process and waits until it answers.
func (s *Server) run(t testing.TB) error {
	t.Helper()
	cmd := s.command(context.WithoutCancel(t.Context())) // the test's cleanup still finds it
	cmd.Stdout, cmd.Stderr = s.log, s.log
	// The process must end with the test, however the test ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // its log shows how it ended
	}()
	s.running, s.exited = cmd, exited

	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		err := s.ready(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return errors.New("it has exited")
		case <-ctx.Done():
			return fmt.Errorf("it is not ready after %v: %w", startTime, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) ready(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+s.health, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// Azurite has no such path: its refusal shows that it is ready.
	if response.StatusCode >= http.StatusInternalServerError {
		return errors.New(response.Status)
	}
	return nil
}

// Kill ends the server at once, as a crash does, and waits for its end.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.running == nil {
		return
	}
	if err := syscall.Kill(-s.running.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("kill the server at %s: %v", s.Endpoint, err)
		return
	}
	<-s.exited
	s.running = nil
}

// Restart kills a running server, and starts it again at the same address with its data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill(t)
	if err := s.run(t); err != nil {
		t.Fatalf("restart the server at %s: %v\n%s", s.Endpoint, err, s.tail())
	}
}

// Freeze stops the server: the kernel accepts connections, and nobody answers until Thaw.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	if s.running == nil {
		return
	}
	if err := process.AwaitStopped(s.running.Process.Pid); err != nil {
		t.Errorf("freeze the server at %s: %v", s.Endpoint, err)
	}
}

// Thaw continues a frozen server.
func (s *Server) Thaw(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if s.running == nil {
		t.Errorf("signal %v to the server at %s: it does not run", signal, s.Endpoint)
		return
	}
	if err := syscall.Kill(-s.running.Process.Pid, signal); err != nil {
		t.Errorf("signal %v to the server at %s: %v", signal, s.Endpoint, err)
	}
}

// tail returns the end of the server's log.
func (s *Server) tail() string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
