// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/mergelog"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
)

type logOptions struct {
	follow    bool
	since     time.Duration
	tail      int64
	previous  bool
	member    string
	container string
}

func (app *App) logs() *cobra.Command {
	opts := &logOptions{}
	cmd := &cobra.Command{
		Use:               "logs NAME",
		GroupID:           look,
		Short:             "Print the logs of all members, merged by time",
		Long:              "Print the logs of all members. The plugin merges them by the time at which the nodes received each line. Each line begins with the name of its member.",
		Example:           "  kubectl etcd logs orders --since 10m\n  kubectl etcd logs orders -f",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runLogs(cmd.Context(), args[0], opts) },
	}
	cmd.Flags().BoolVarP(&opts.follow, "follow", "f", false, "follow the logs")
	cmd.Flags().DurationVar(&opts.since, "since", 0, "only lines newer than this, such as 10m")
	cmd.Flags().Int64Var(&opts.tail, "tail", -1, "number of last lines of each member; -1 prints all")
	cmd.Flags().BoolVarP(&opts.previous, "previous", "p", false, "print the logs from before the last restart of the containers")
	cmd.Flags().StringVar(&opts.member, "member", "", "only this member")
	cmd.Flags().StringVarP(&opts.container, "container", "c", "etcd", "container of the pods")
	_ = cmd.RegisterFlagCompletionFunc("member", app.completeMember)
	return cmd
}

func (app *App) runLogs(ctx context.Context, name string, opts *logOptions) error {
	a, obj, err := app.openCluster(ctx, name)
	if err != nil {
		return err
	}
	pods, err := observe.Pods(ctx, a, obj)
	if err != nil {
		return err
	}
	var sources []mergelog.Source
	var failures []error
	for i := range pods {
		if opts.member != "" && opts.member != pods[i].Name {
			continue
		}
		stream, err := a.Kube.CoreV1().Pods(a.Namespace).GetLogs(pods[i].Name, opts.options()).Stream(ctx)
		if err != nil {
			// One member without logs keeps no other's from being read.
			fmt.Fprintf(app.ErrOut, "%s: %v\n", pods[i].Name, err)
			failures = append(failures, err)
			continue
		}
		defer stream.Close()
		sources = append(sources, mergelog.Source{Name: pods[i].Name, Lines: stream})
	}
	switch {
	case len(sources) == 0 && len(failures) > 0:
		return errors.New("no member has logs that can be read")
	case len(sources) == 0:
		return fmt.Errorf("there are no such pods: %s", hint.Etcd(a.Place(), "members", name))
	}
	if opts.follow {
		err = mergelog.Follow(ctx, app.Out, sources, func(member string) {
			if ctx.Err() == nil {
				fmt.Fprintf(app.ErrOut, "%s: its log has ended, and the command does not follow the next container\n", member)
			}
		})
	} else {
		err = mergelog.Merge(ctx, app.Out, sources)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil && len(failures) > 0:
		return exit(1) // standard error says why
	default:
		return err
	}
}

func (o *logOptions) options() *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: o.container, Follow: o.follow, Previous: o.previous, Timestamps: true}
	if o.since > 0 {
		seconds := max(1, int64(o.since.Seconds()))
		options.SinceSeconds = &seconds
	}
	if o.tail >= 0 {
		options.TailLines = &o.tail
	}
	return options
}
