// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Localkube is the program behind hack/kube and hack/image. It also runs as each of the
// processes that make up a local Kubernetes: it starts itself again with another role.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/etcd-operator/etcd-operator/hack/localkube/cli"
	"github.com/etcd-operator/etcd-operator/hack/localkube/cluster"
	"github.com/etcd-operator/etcd-operator/hack/localkube/disk"
	"github.com/etcd-operator/etcd-operator/hack/localkube/keeper"
	"github.com/etcd-operator/etcd-operator/hack/localkube/node"
	"github.com/etcd-operator/etcd-operator/hack/localkube/nsinit"
	"github.com/etcd-operator/etcd-operator/hack/localkube/progress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// interrupts returns the signals that end a command in order. SIGHUP comes when the terminal goes. A program
// that nohup(1) protects from it would receive it again.
func interrupts() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func run(ctx context.Context, args []string) int {
	if len(args) < 2 {
		return cli.Main(ctx, args, os.Stdout, os.Stderr)
	}
	// Containers have users of their own, and read what the programs of a cluster write for them, such as
	// /etc/resolv.conf. The umask of the caller may keep all others away.
	if strings.HasPrefix(args[0], "__") {
		syscall.Umask(0o022)
	}
	var err error
	switch role, state := args[0], args[1]; role {
	case nsinit.Role:
		extra := 0
		if args[1] == cluster.Role {
			extra = 1 // the report
		}
		code, err := nsinit.Main(args[1:], extra)
		if err != nil {
			fmt.Fprintln(os.Stderr, "init:", err)
		}
		return code
	case keeper.Role:
		if len(args) != 4 {
			return 2
		}
		forPID, convErr := strconv.Atoi(args[2])
		if convErr != nil {
			return 2
		}
		err = keeper.Run(ctx, state, forPID, args[3])
	case cluster.Role:
		const report = 3 // handed down by the init
		err = cluster.Run(ctx, state, progress.NewWriter(os.NewFile(report, "report")))
	case disk.Role:
		err = disk.Fill(ctx, args[1], args[2:])
	case node.Role:
		if len(args) != 3 {
			return 2
		}
		err = node.Run(ctx, state, args[2])
	default:
		return cli.Main(ctx, args, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, args[0]+":", err)
		return 1
	}
	return 0
}
