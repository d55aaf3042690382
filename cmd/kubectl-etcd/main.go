// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-etcd is a plugin of kubectl. `kubectl etcd status NAME` shows the state
// of an EtcdCluster; other commands inspect and operate it. The plugin connects to the
// API server alone.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/etcd-operator/etcd-operator/internal/plugin/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// client-go logs what it also returns, and what ends with the command.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// After the first signal, a command ends by itself. A second signal ends it at once.
	context.AfterFunc(ctx, stop)
	code := command.Main(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
