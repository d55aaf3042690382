// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The etcd-operator takes care of the EtcdClusters in its namespace, or of those
// that are annotated so in all namespaces. Called as `etcd-operator check-dns` it
// is the init container of a cluster's members.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/etcd-operator/etcd-operator/internal/checkdns"
	"github.com/etcd-operator/etcd-operator/internal/logs"
	"github.com/etcd-operator/etcd-operator/internal/version"
)

const program = "etcd-operator"

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// terminationLog is where the kubelet reads why a container ended.
const terminationLog = "/dev/termination-log"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
	var code int
	if len(os.Args) > 1 && os.Args[1] == "check-dns" {
		code = checkDNS(ctx, os.Args[2:], os.Stdout, os.Stderr)
	} else {
		code = operate(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// operate is the operator itself.
func operate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, stderr)
	if err != nil {
		return usageCode(err)
	}
	if opts.version {
		fmt.Fprint(stdout, version.Text(program))
		return exitOK
	}
	logger := logs.New(stderr)
	logs.RouteKlog(logger)
	if err := run(ctx, opts, logger.WithField("pkg", "operator")); err != nil {
		logger.Error(err)
		return exitFailed
	}
	return exitOK
}

// checkDNS is the init container of a member.
func checkDNS(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := checkdns.Parse(args, os.Getenv, stderr)
	if err != nil {
		return usageCode(err)
	}
	transport := checkdns.PeerTransport(cfg.Certificate)
	defer transport.CloseIdleConnections()
	cfg.Resolver, cfg.Transport, cfg.Out = checkdns.PureResolver(), transport, stdout
	if err := checkdns.Run(ctx, cfg); err != nil {
		fmt.Fprintf(stderr, "check-dns: %v\n", err)
		tellKubelet(err)
		return exitFailed
	}
	return exitOK
}

// tellKubelet writes the reason where `kubectl describe pod` shows it. Outside of
// a pod there is no such file, and none is made.
func tellKubelet(reason error) {
	f, err := os.OpenFile(terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, reason)
}

func usageCode(err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	return exitUsage
}
