// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command holds the commands of `kubectl etcd`, one file each: flags, what is
// read or changed, and what is printed.
package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/tunnel"
	"github.com/etcd-operator/etcd-operator/internal/version"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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

// interrupted is the exit code of a shell's command that Ctrl-C ends.
const interrupted = 130

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
	app.flags.Warnings = streams.ErrOut
	app.Open = app.flags.Open
	app.Dial = func(a *access.Access) (etcd.Dial, func()) {
		t := tunnel.New(a.Config, a.Kube.CoreV1().RESTClient(), a.Namespace)
		return t.Dial, t.Close
	}
	return app.Run(ctx, args)
}

// Run runs a command line, and returns the exit code.
func (app *App) Run(ctx context.Context, args []string) int {
	root := app.root() //nolint:contextcheck // cobra passes the context to the commands
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
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return interrupted // the user knows why
	}
	fmt.Fprintf(app.ErrOut, "error: %v\n", err)
	switch {
	case errors.As(err, &own):
		return own.code
	case ctx.Err() != nil:
		return interrupted
	default:
		return 1
	}
}

func (app *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-etcd",
		Short:         "Inspect and operate EtcdClusters",
		Long:          "Inspect and operate the EtcdClusters of the etcd operator. All commands connect to the API server alone.",
		Version:       version.Version,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl etcd"},
		SilenceErrors: true,
		SilenceUsage:  true,
		// Without Args, cobra refuses an unknown command and suggests a known one.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// kubectl completes through kubectl_complete-etcd, and not by a script of the plugin.
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(usageError)
	app.flags.Bind(root.PersistentFlags())
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), inheritedFlags, `

"kubectl etcd --help" lists the flags that all commands have.`, 1))
	_ = root.RegisterFlagCompletionFunc("namespace", cobra.NoFileCompletions)
	root.AddGroup(
		&cobra.Group{ID: look, Title: "Inspect a cluster:"},
		&cobra.Group{ID: operate, Title: "Operate a cluster:"},
		&cobra.Group{ID: keep, Title: "Back up and restore:"},
	)
	app.addCommands(root)
	return root
}

// inheritedFlags is the part of cobra's help texts that prints the twenty flags of
// kubectl.
const inheritedFlags = `

Global Flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}`

// The groups of commands.
const (
	look    = "look"
	operate = "operate"
	keep    = "keep"
)

// usageError adds to an error of the command line where its usage stands, as kubectl does.
func usageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nSee '%s --help' for usage", err, cmd.CommandPath())
}

// usage makes errors of arguments name the usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError(cmd, err)
		}
		return nil
	}
}

// openCluster opens the cluster of the command line and reads an EtcdCluster in it.
func (app *App) openCluster(ctx context.Context, name string) (*access.Access, *api.EtcdCluster, error) {
	a, err := app.Open()
	if err != nil {
		return nil, nil, err
	}
	obj, err := observe.Object(ctx, a, name)
	return a, obj, err
}

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
