// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tripwire is a server that nobody may ask anything. It stands for the cluster,
// the etcd and the cloud in production that a person's environment and home directory
// may name. hack/test makes it the one that they name, and fails if it was asked.
//
//	tripwire DIRECTORY
//
// It prints the shell commands that set such an environment, closes its output, and
// writes each connection and each request into the file DIRECTORY/asked. It ends with
// the process that has started it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	// The kernel remembers for a thread that it ends with the parent.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tripwire:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, settings io.WriteCloser) error {
	if len(args) != 1 {
		return errors.New("usage: tripwire DIRECTORY")
	}
	if err := endWithParent(); err != nil {
		return err
	}
	asked, err := os.OpenFile(filepath.Join(args[0], "asked"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer asked.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b := baitFor(filepath.Join(args[0], "home"), listener.Addr().String())
	if err := b.write(); err != nil {
		return errors.Join(err, listener.Close())
	}
	if _, err := io.WriteString(settings, b.shell()); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := settings.Close(); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serve(ctx, listener, asked)
}

// endWithParent has the kernel kill this process when its parent ends.
func endWithParent() error {
	parent := os.Getppid()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the parent: %w", err)
	}
	if os.Getppid() != parent {
		return errors.New("the parent has ended")
	}
	return nil
}
