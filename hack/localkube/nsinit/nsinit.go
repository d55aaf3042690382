// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nsinit is the first process of a pid namespace. It runs one program and reaps its
// orphans. When that program ends, the namespace ends, and the kernel kills all processes in
// it.
package nsinit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/environ"
)

// Role is the argument with which this program acts as an init. The arguments of the program
// to run follow; it is this program again.
const Role = "__init"

// goFD is where the parent signals that its preparations are complete.
const goFD = 3

// A Child is an init and everything in its namespaces.
type Child struct {
	Cmd     *exec.Cmd
	proceed *os.File
}

// Start starts an init in pid, mount, network, ipc and uts namespaces of its own, with only
// PATH from this process's environment. The init waits for Proceed before it runs the program.
// If the calling thread ends, so does the child: callers must lock themselves to a thread that
// lasts.
func Start(ctx context.Context, stdout io.Writer, extra []*os.File, args ...string) (*Child, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{Role}, args...)...)
	cmd.Args[0] = "localkube"
	cmd.Env = environ.Bare(os.Environ())
	cmd.Stdout, cmd.Stderr = stdout, stdout
	cmd.ExtraFiles = append([]*os.File{r}, extra...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Setsid:     true,
		Pdeathsig:  unix.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start a process in new namespaces: %w", err)
	}
	return &Child{Cmd: cmd, proceed: w}, nil
}

// Proceed lets the child run its program.
func (c *Child) Proceed() error {
	_, err := c.proceed.Write([]byte{1})
	return errors.Join(err, c.proceed.Close())
}

// Main is the init itself. It returns the program's exit code. It passes further open files to
// the program, from descriptor 3 up.
func Main(args []string, extra int) (int, error) {
	if os.Getpid() != 1 {
		return 1, fmt.Errorf("%s is started by localkube itself", Role)
	}
	proceed := os.NewFile(goFD, "proceed")
	if n, err := proceed.Read(make([]byte, 1)); n != 1 {
		return 1, fmt.Errorf("the parent ended before the network was there: %w", err)
	}
	proceed.Close()
	if err := mounts(); err != nil {
		return 1, err
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i := range extra {
		files = append(files, os.NewFile(uintptr(goFD+1+i), "inherited"))
	}
	p, err := os.StartProcess("/proc/self/exe", append([]string{"localkube"}, args...), &os.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		return 1, fmt.Errorf("start %v: %w", args, err)
	}
	for _, f := range files[3:] {
		f.Close()
	}
	return reap(p.Pid)
}

// mounts cuts the mounts off from the parent's, lets them propagate to the
// containers below, and gives the namespace its own /proc and /run.
func mounts() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"", "/", "", unix.MS_REC | unix.MS_SHARED},
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s on %s (flags %#x): %w", m.kind, m.target, m.flags, err)
		}
	}
	return nil
}

// reap collects children until the one with that ID ends.
func reap(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for children: %w", err)
		case got == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case got == pid:
			return status.ExitStatus(), nil
		}
	}
}
