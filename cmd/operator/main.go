// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The etcd-operator manages the EtcdClusters in its namespace, or with -cluster-wide the
// annotated ones in all namespaces.
//
// The same program has the init containers of a first member that starts on a backup, `etcd-operator
// fetch-backup` and `etcd-operator restore-backup`, or on the data of a running etcd: `etcd-operator
// check-source`, `check-tool` and `copy-source` come in place of the first. `etcd-operator serve-data`
// is an ephemeral container beside an etcd that has no quorum.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/etcd-operator/etcd-operator/internal/logs"
	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/internal/seed"
	"github.com/etcd-operator/etcd-operator/internal/survivor"
)

const program = "etcd-operator"

// terminationLog is the file in which the kubelet looks for the reason of a container's end.
const terminationLog = "/dev/termination-log"

func main() {
	os.Exit(operator.Main(context.Background(), func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		if len(args) > 0 {
			if command, ok := inPods[args[0]]; ok {
				return command(ctx, args[1:], stdout, stderr)
			}
		}
		return operate(ctx, args, stdout, stderr)
	}))
}

// inPods are the commands of containers in the pods of members.
var inPods = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) int{
	seed.CheckCommand: copySource(seed.CheckCommand, seed.Copy.Check),
	seed.ToolCommand:  checkTool,
	seed.CopyCommand:  copySource(seed.CopyCommand, seed.Copy.Run),
	"fetch-backup":    fetchBackup,
	"restore-backup":  restoreBackup,
	survivor.Command:  serveData,
}

// operate runs the operator and returns its exit code.
func operate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, stderr)
	return operator.Operate(program, opts.Flags, err, stdout, stderr, func(log *logrus.Entry) error {
		return run(ctx, opts, log)
	})
}

// fetchBackup runs the first init container of a member that starts on a backup.
func fetchBackup(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fetch, err := seed.ParseFetch(args, stderr)
	if err != nil {
		return operator.UsageCode(err)
	}
	if fetch.Program, err = os.Executable(); err != nil {
		return ended("fetch-backup", fmt.Errorf("find this program: %w", err), stderr)
	}
	fetch.Transport, fetch.Out, fetch.Err = seed.Transport(), stdout, stderr
	return ended("fetch-backup", fetch.Run(ctx), stderr)
}

// copySource runs an init container of a member that starts on the data of a running etcd.
func copySource(command string, do func(seed.Copy, context.Context) error) func(context.Context, []string, io.Writer, io.Writer) int {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		c, err := seed.ParseCopy(args, stderr)
		if err != nil {
			return operator.UsageCode(err)
		}
		if c.Program, err = os.Executable(); err != nil {
			return ended(command, fmt.Errorf("find this program: %w", err), stderr)
		}
		c.Out, c.Err = stdout, stderr
		return ended(command, do(c, ctx), stderr)
	}
}

// checkTool runs one between them, in etcd's image.
func checkTool(_ context.Context, args []string, _, stderr io.Writer) int {
	tool, err := seed.ParseTool(args, stderr)
	if err != nil {
		return operator.UsageCode(err)
	}
	return ended(seed.ToolCommand, seed.CheckTool(tool), stderr)
}

// restoreBackup runs the second one, in etcd's image.
func restoreBackup(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	restore, err := seed.ParseRestore(args, stderr)
	if err != nil {
		return operator.UsageCode(err)
	}
	restore.Out, restore.Err = stdout, stderr
	return ended("restore-backup", restore.Run(ctx), stderr)
}

// serveData gives the data of a member without a quorum, until somebody ends the process.
func serveData(ctx context.Context, args []string, _, stderr io.Writer) int {
	server, err := survivor.Parse(args, stderr)
	if err != nil {
		return operator.UsageCode(err)
	}
	server.Log = logs.New(stderr).WithField("pkg", "survivor")
	server.Run(ctx)
	return operator.ExitOK
}

// ended reports on stderr how an init container ended, and returns its exit code.
func ended(command string, err error, stderr io.Writer) int {
	if err == nil {
		return operator.ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", command, err)
	tellKubelet(err)
	return operator.ExitFailed
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
