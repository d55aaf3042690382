// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
)

// unknown is the exit code if the plugin cannot find out the state of a cluster.
const unknown = 3

type statusOptions struct {
	output   output
	watch    bool
	all      bool
	interval time.Duration
}

func (app *App) status() *cobra.Command {
	opts := &statusOptions{}
	cmd := &cobra.Command{
		Use:     "status [NAME...]",
		GroupID: look,
		Short:   "Show whether a cluster serves, and each member",
		Long: `Show whether a cluster serves, each member, the newest backups, the certificates, and
what to do. Without a name, show all EtcdClusters of the namespace.

The plugin asks the members. If you may not connect to them, or may not read the
operator's client certificate, the status shows what the operator last saw.

Exit codes: 0 serving, 1 degraded, 2 down, 3 unknown. The worst of several clusters counts.
An error of the command line is 3 too.`,
		Example: `  kubectl etcd status orders
  kubectl etcd status orders --watch
  kubectl etcd status -A
  kubectl etcd status orders -o json`,
		ValidArgsFunction: app.severalClusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return unknownState(app.runStatus(cmd.Context(), args, opts))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return unknownState(usageError(cmd, err)) })
	opts.output.bind(cmd, asWide, asName)
	cmd.Flags().BoolVarP(&opts.watch, "watch", "w", false, "repeat the status until Ctrl-C")
	cmd.Flags().BoolVarP(&opts.all, "all-namespaces", "A", false, "show the EtcdClusters of all namespaces")
	cmd.Flags().DurationVar(&opts.interval, "interval", 2*time.Second, "time between two looks of --watch")
	return cmd
}

// unknownState gives an error its exit code: 1 would mean that the cluster is degraded.
func unknownState(err error) error {
	if err == nil || errors.As(err, new(exit)) || errors.Is(err, context.Canceled) {
		return err
	}
	return coded{err, unknown}
}

func (app *App) runStatus(ctx context.Context, names []string, opts *statusOptions) error {
	switch {
	case opts.interval <= 0:
		return errors.New("--interval must be positive")
	case opts.all && len(names) > 0:
		return errors.New("a name belongs to one namespace: use either names or --all-namespaces")
	}
	a, err := app.Open()
	if err != nil {
		return err
	}
	all := app.observers(a, opts.watch)
	defer all.close()
	screen := newScreen(app.Out)
	for {
		clusters, err := wanted(ctx, a, names, opts.all)
		if err != nil && !opts.watch {
			return err
		}
		list, failures := all.summaries(ctx, clusters, len(names) > 0)
		switch {
		case ctx.Err() != nil && opts.watch:
			return nil // the user has seen enough
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err != nil { // the API server may come back
			failures = append(failures, err)
		}
		frame := &bytes.Buffer{}
		if err := app.writeSummaries(frame, list, len(names) == 1, opts); err != nil {
			return err
		}
		if !opts.watch || opts.output.machine() {
			if err := app.printOnce(frame.Bytes(), failures, len(clusters) == 0, a.Namespace, opts); err != nil {
				return err
			}
		} else {
			for _, err := range failures {
				fmt.Fprintf(frame, "error: %v\n", err)
			}
			screen.show(frame.Bytes())
		}
		if !opts.watch {
			return exitCodeOf(list, failures)
		}
		if !app.pause(ctx, opts.interval) {
			return nil
		}
	}
}

// wanted returns the clusters to show.
func wanted(ctx context.Context, a *access.Access, names []string, all bool) ([]types.NamespacedName, error) {
	var list []types.NamespacedName
	for _, name := range names {
		list = append(list, types.NamespacedName{Namespace: a.Namespace, Name: name})
	}
	if len(names) > 0 {
		return list, nil
	}
	namespace := a.Namespace
	if all {
		namespace = metav1.NamespaceAll
	}
	found, err := observe.Objects(ctx, a, namespace)
	if err != nil {
		return nil, err
	}
	for i := range found {
		list = append(list, types.NamespacedName{Namespace: found[i].Namespace, Name: found[i].Name})
	}
	return list, nil
}

// summaries returns what can be said of clusters, and why nothing can be said of the
// others. A cluster that nobody named may be deleted in between.
func (o *observers) summaries(ctx context.Context, names []types.NamespacedName, named bool) (list []*summary.Summary, failures []error) {
	list = []*summary.Summary{}
	for _, s := range o.look(ctx, names) {
		switch {
		case s.err == nil:
			list = append(list, s.summary)
		case named || !apierrors.IsNotFound(s.err):
			failures = append(failures, s.err)
		}
	}
	return list, failures
}

// printOnce prints a frame, and below it the failures.
func (app *App) printOnce(frame []byte, failures []error, none bool, namespace string, opts *statusOptions) error {
	if _, err := app.Out.Write(frame); err != nil {
		return err
	}
	for _, err := range failures {
		fmt.Fprintf(app.ErrOut, "error: %v\n", err)
	}
	switch {
	case !none || len(failures) > 0:
	case opts.all:
		fmt.Fprintln(app.ErrOut, "No EtcdClusters found.")
	default:
		fmt.Fprintf(app.ErrOut, "No EtcdClusters found in %s namespace.\n", namespace)
	}
	return nil
}

// writeSummaries writes one cluster as an object, and the clusters of a namespace as a
// list, however many there are.
func (app *App) writeSummaries(out io.Writer, list []*summary.Summary, one bool, opts *statusOptions) error {
	var value any = list
	if one {
		if len(list) == 0 {
			return nil
		}
		value = list[0]
	}
	var names []string
	for _, s := range list {
		names = append(names, "etcdcluster.etcd.database.coreos.com/"+s.Name)
	}
	return opts.output.write(out, value, names, func(out io.Writer) error {
		for i, s := range list {
			if i > 0 {
				fmt.Fprintln(out)
			}
			if err := s.Print(out, app.Clock.Now(), summary.Style{Namespace: opts.all, Wide: opts.output.wide()}); err != nil {
				return err
			}
		}
		return nil
	})
}

func exitCodeOf(list []*summary.Summary, failures []error) error {
	if len(failures) > 0 {
		return exit(unknown)
	}
	if len(list) == 0 {
		return nil
	}
	worst := slices.MaxFunc(list, func(a, b *summary.Summary) int {
		return cmp.Compare(a.State.ExitCode(), b.State.ExitCode())
	})
	if code := worst.State.ExitCode(); code != 0 {
		return exit(code)
	}
	return nil
}
