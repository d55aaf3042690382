// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The etcd-launcher runs in the pods of members, before etcd. It is a program of its own,
// because each pod of a joining member gets a copy of it.
//
// `etcd-launcher check-dns` is the init container. `etcd-launcher launch FLAGS -- COMMAND` is
// the first process of the etcd container of a member that joins: it waits until the running
// members expect this one, and becomes etcd in that moment. The kubelet notices the end of an
// init container up to a second late. `etcd-launcher stop` is for people: it restarts etcd in such
// a container.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/etcd-operator/etcd-operator/internal/checkdns"
	"github.com/etcd-operator/etcd-operator/internal/datadir"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// terminationLog is the file in which the kubelet looks for the reason of a container's end.
const terminationLog = "/dev/termination-log"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `usage: etcd-launcher check-dns FLAGS            the init container of members
       etcd-launcher launch FLAGS -- COMMAND    waits, and becomes the command
       etcd-launcher stop                       ends etcd, so that Kubernetes restarts it in its pod
`

// run executes a command line, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "stop" {
		if err := stop(firstProcess, stdout); err != nil {
			fmt.Fprintf(stderr, "stop: %v\n", err)
			return exitFailed
		}
		return exitOK
	}
	if len(args) == 0 || args[0] != "check-dns" && args[0] != "launch" {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	name, args := args[0], args[1:]
	var command []string
	if name == "launch" {
		i := slices.Index(args, "--")
		if i < 0 || i == len(args)-1 {
			fmt.Fprintf(stderr, "launch: -- and the command of etcd are missing\n%s", usage)
			return exitUsage
		}
		args, command = args[:i], args[i+1:]
	}
	cfg, err := checkdns.Parse(args, os.Getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	transport := checkdns.PeerTransport(cfg.Certificate)
	cfg.Resolver, cfg.Transport, cfg.Out = checkdns.PureResolver(), transport, stdout
	err = checkdns.Run(ctx, cfg)
	transport.CloseIdleConnections()
	if err == nil && name == "launch" {
		err = fmt.Errorf("start etcd: %w", syscall.Exec(command[0], command, environment()))
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	tellKubelet(err)
	if name == "launch" && errors.Is(err, checkdns.ErrNotExpected) {
		return checkdns.ExitNotStarted
	}
	return exitFailed
}

// environment is that of etcd.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, datadir.StartedEnv+"=") })
}

// tellKubelet writes the reason where `kubectl describe pod` shows it. Outside of a pod there
// is no such file, and it creates none.
func tellKubelet(reason error) {
	f, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, reason)
}
