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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
)

// unknown is the exit code where the state of a cluster can't be found out.
const unknown = 3

type statusOptions struct {
	output   output
	watch    bool
	interval time.Duration
}

func (app *App) status() *cobra.Command {
	opts := &statusOptions{}
	cmd := &cobra.Command{
		Use:     "status [NAME...]",
		GroupID: look,
		Short:   "Show whether a cluster serves, and each member",
		Long: `Show whether a cluster serves, how each member is, the newest backups, the
certificates, and what to do. Without a name, show all EtcdClusters of the namespace.

The members are asked themselves. Where the user may not connect to them or not read the
operator's client certificate, the status shows what the operator last saw.

Exit codes: 0 serving, 1 degraded, 2 down, 3 unknown. Of several clusters, the worst counts.`,
		Example: `  kubectl etcd status orders
  kubectl etcd status orders --watch
  kubectl etcd status orders -o json`,
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := app.runStatus(cmd.Context(), args, opts)
			if err != nil && !errors.As(err, new(exit)) {
				return coded{err, unknown}
			}
			return err
		},
	}
	opts.output.bind(cmd)
	cmd.Flags().BoolVarP(&opts.watch, "watch", "w", false, "show the status again and again")
	cmd.Flags().DurationVar(&opts.interval, "interval", 2*time.Second, "time between two looks of --watch")
	return cmd
}

func (app *App) runStatus(ctx context.Context, names []string, opts *statusOptions) error {
	if opts.interval <= 0 {
		return fmt.Errorf("--interval must be positive")
	}
	a, o, end, err := app.observer()
	if err != nil {
		return err
	}
	defer end()
	screen := newScreen(app.Out)
	earlier := map[string]*observe.Cluster{}
	for {
		now := names
		if len(names) == 0 {
			list, err := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				now = append(now, list.Items[i].Name)
			}
			if len(now) == 0 && !opts.watch {
				fmt.Fprintf(app.ErrOut, "No EtcdClusters found in %s namespace.\n", a.Namespace)
				return nil
			}
		}
		summaries, err := summarize(ctx, o, now, earlier)
		switch {
		case ctx.Err() != nil && opts.watch:
			return nil // the person has seen enough
		case err != nil && !opts.watch:
			return err
		}
		frame := &bytes.Buffer{}
		if err != nil { // the API server may come back
			fmt.Fprintf(frame, "error: %v\n", err)
		} else if err := app.writeSummaries(frame, summaries, opts); err != nil {
			return err
		}
		if opts.watch && opts.output == asText {
			screen.show(frame.Bytes())
		} else if _, err := app.Out.Write(frame.Bytes()); err != nil {
			return err
		}
		if !opts.watch {
			if worst := worstOf(summaries).ExitCode(); worst != 0 {
				return exit(worst)
			}
			return nil
		}
		if !app.pause(ctx, opts.interval) {
			return nil
		}
	}
}

func summarize(ctx context.Context, o *observe.Observer, names []string, earlier map[string]*observe.Cluster) ([]*summary.Summary, error) {
	var list []*summary.Summary
	for _, name := range names {
		c, err := o.Observe(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, summary.Of(c, earlier[name]))
		earlier[name] = c
	}
	return list, nil
}

func (app *App) writeSummaries(out io.Writer, list []*summary.Summary, opts *statusOptions) error {
	var value any = list
	if len(list) == 1 {
		value = list[0]
	}
	return opts.output.write(out, value, func(out io.Writer) error {
		for i, s := range list {
			if i > 0 {
				fmt.Fprintln(out)
			}
			if err := s.Print(out, app.Clock.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

func worstOf(list []*summary.Summary) summary.State {
	if len(list) == 0 {
		return summary.Serving
	}
	return slices.MaxFunc(list, func(a, b *summary.Summary) int {
		return cmp.Compare(a.State.ExitCode(), b.State.ExitCode())
	}).State
}
