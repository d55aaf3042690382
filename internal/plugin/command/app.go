// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command holds the commands of `kubectl etcd`, one file each: flags, what is
// read or changed, and what is printed.
package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/tunnel"
	"github.com/etcd-operator/etcd-operator/internal/version"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// App is what the commands share.
type App struct {
	genericiooptions.IOStreams
	// Open returns the Kubernetes cluster that the command line names.
	Open func() (*access.Access, error)
	// Dial connects to the pods of a namespace by addresses of the form pod:port. The
	// function that it returns ends all connections.
	Dial  func(*access.Access) (etcd.Dial, func())
	Clock clock.WithTicker

	flags access.Flags
}

// exit is an error that has been reported already, and the exit code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// coded is an error with an exit code of its own.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// Main runs the command line, and returns the exit code.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	app := &App{IOStreams: streams, Clock: clock.RealClock{}}
	app.Open = app.flags.Open
	app.Dial = func(a *access.Access) (etcd.Dial, func()) {
		t := tunnel.New(a.Config, a.Kube.CoreV1().RESTClient(), a.Namespace)
		return t.Dial, t.Close
	}
	return app.Run(ctx, args)
}

// Run runs a command line, and returns the exit code.
func (app *App) Run(ctx context.Context, args []string) int {
	root := app.root()
	root.SetArgs(args)
	root.SetIn(app.In)
	root.SetOut(app.Out)
	root.SetErr(app.ErrOut)
	err := root.ExecuteContext(ctx)
	var code exit
	var own coded
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &own):
		fmt.Fprintf(app.ErrOut, "error: %v\n", err)
		return own.code
	default:
		fmt.Fprintf(app.ErrOut, "error: %v\n", err)
		return 1
	}
}

func (app *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-etcd",
		Short:         "Look into EtcdClusters and operate them",
		Long:          "Look into the EtcdClusters of the etcd operator, and operate them. All commands work through the API server alone.",
		Version:       version.Version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl etcd"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	app.flags.Bind(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("namespace", cobra.NoFileCompletions)
	root.AddGroup(
		&cobra.Group{ID: look, Title: "Look into a cluster:"},
		&cobra.Group{ID: operate, Title: "Operate a cluster:"},
		&cobra.Group{ID: keep, Title: "Back up and restore:"},
	)
	app.addCommands(root)
	return root
}

// The groups of commands.
const (
	look    = "look"
	operate = "operate"
	keep    = "keep"
)

// observer opens the cluster of the command line, with connections to its members.
func (app *App) observer() (*access.Access, *observe.Observer, func(), error) {
	a, err := app.Open()
	if err != nil {
		return nil, nil, nil, err
	}
	dial, end := app.Dial(a)
	o := observe.New(a, dial, app.Clock.Now)
	return a, o, func() { o.Close(); end() }, nil
}

// pause waits, and returns false if the context ends before.
func (app *App) pause(ctx context.Context, d time.Duration) bool {
	timer := app.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
