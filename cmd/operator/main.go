// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The etcd-operator takes care of the EtcdClusters in its namespace, or of those
// that are annotated so in all namespaces. Called as `etcd-operator check-dns` it
// is the init container of a cluster's members.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/etcd-operator/etcd-operator/internal/checkdns"
	"github.com/etcd-operator/etcd-operator/internal/operator"
)

const program = "etcd-operator"

// terminationLog is where the kubelet reads why a container ended.
const terminationLog = "/dev/termination-log"

func main() {
	os.Exit(operator.Main(context.Background(), func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		if len(args) > 0 && args[0] == "check-dns" {
			return checkDNS(ctx, args[1:], stdout, stderr)
		}
		return operate(ctx, args, stdout, stderr)
	}))
}

// operate is the operator itself.
func operate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, stderr)
	return operator.Operate(program, opts.Flags, err, stdout, stderr, func(log *logrus.Entry) error {
		return run(ctx, opts, log)
	})
}

// checkDNS is the init container of a member.
func checkDNS(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := checkdns.Parse(args, os.Getenv, stderr)
	if err != nil {
		return operator.UsageCode(err)
	}
	transport := checkdns.PeerTransport(cfg.Certificate)
	defer transport.CloseIdleConnections()
	cfg.Resolver, cfg.Transport, cfg.Out = checkdns.PureResolver(), transport, stdout
	if err := checkdns.Run(ctx, cfg); err != nil {
		fmt.Fprintf(stderr, "check-dns: %v\n", err)
		tellKubelet(err)
		return operator.ExitFailed
	}
	return operator.ExitOK
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
