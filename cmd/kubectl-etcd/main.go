// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The kubectl-etcd is a plugin of kubectl: `kubectl etcd status NAME` shows an
// EtcdCluster at a glance, and other commands look into it and operate it. It talks to
// the API server alone.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/etcd-operator/etcd-operator/internal/plugin/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Main(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
