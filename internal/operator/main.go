// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/etcd-operator/etcd-operator/internal/logs"
	"github.com/etcd-operator/etcd-operator/internal/version"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Main runs a program until it ends or SIGINT or SIGTERM arrives, and returns its exit code.
func Main(ctx context.Context, program func(ctx context.Context, args []string, stdout, stderr io.Writer) int) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	defer stop()
	return program(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// Operate runs an operator, given the error of reading its flags. With -version it only prints
// the version. It returns the exit code.
func Operate(name string, f Flags, err error, stdout, stderr io.Writer, run func(*logrus.Entry) error) int {
	if err != nil {
		return UsageCode(err)
	}
	if f.Version {
		fmt.Fprint(stdout, version.Text(name))
		return ExitOK
	}
	leaveMemory()
	logger := logs.New(stderr)
	logs.RouteKlog(logger)
	if err := run(logger.WithField("pkg", "operator")); err != nil {
		logger.Error(err)
		return ExitFailed
	}
	return ExitOK
}

// UsageCode returns the exit code for flags that do not parse.
func UsageCode(err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	return ExitUsage
}
