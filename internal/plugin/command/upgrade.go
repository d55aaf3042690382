// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	"github.com/etcd-operator/etcd-operator/internal/plugin/upgradeplan"
)

type upgradeOptions struct {
	waitOptions
	to   string
	plan bool
}

func (app *App) upgrade() *cobra.Command {
	opts := &upgradeOptions{}
	cmd := &cobra.Command{
		Use:     "upgrade NAME --to VERSION [--plan]",
		GroupID: operate,
		Short:   "Plan an upgrade of etcd, or begin its first step",
		Long: `Plan an upgrade of etcd: print the versions on the way, and what prevents the upgrade now.
Without --plan, begin the first step if nothing prevents it. The operator upgrades one
member after the other. Repeat the command for each further step.`,
		Example:           "  kubectl etcd upgrade orders --to 3.7.3 --plan\n  kubectl etcd upgrade orders --to 3.7.3",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return app.runUpgrade(cmd.Context(), args[0], opts) },
	}
	opts.bind(cmd, 30*time.Minute)
	cmd.Flags().StringVar(&opts.to, "to", "", "version of etcd to reach, such as 3.7.3")
	cmd.Flags().BoolVar(&opts.plan, "plan", false, "print the plan, and change nothing")
	_ = cmd.MarkFlagRequired("to")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(upgradeplan.Known(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (app *App) runUpgrade(ctx context.Context, name string, opts *upgradeOptions) error {
	a, o, end, err := app.observer()
	if err != nil {
		return err
	}
	defer end()
	c, err := o.Observe(ctx, name)
	if err != nil {
		return err
	}
	status := c.Object.Status
	steps, err := upgradeplan.Steps(status.CurrentVersion, status.InitialVersion, opts.to)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		fmt.Fprintf(app.Out, "EtcdCluster %s already runs etcd %s.\n", name, status.CurrentVersion)
		return nil
	}
	s := summary.Of(c, nil)
	against := upgradeplan.Against(s, steps[0])
	fmt.Fprintf(app.Out, "EtcdCluster %s runs etcd %s.\n", name, status.CurrentVersion)
	for i, step := range steps {
		fmt.Fprintf(app.Out, "  step %d: %s, %d members one after the other, the leader last\n", i+1, step, s.Voters)
	}
	if upgradeplan.LeavesMinor(status.CurrentVersion, steps[0]) {
		fmt.Fprintf(app.Out, "You cannot downgrade etcd afterwards. Back up first: %s\n", hint.Etcd(a.Place(), "backup", name))
	}
	for _, reason := range against {
		fmt.Fprintln(app.Out, "  prevents it now: "+reason)
	}
	switch {
	case opts.plan && len(against) > 0:
		return exit(1)
	case opts.plan:
		fmt.Fprintf(app.Out, "Nothing prevents it. Begin: %s\n", hint.Etcd(a.Place(), "upgrade", name, "--to", opts.to))
		return nil
	case len(against) > 0:
		return errors.New("the upgrade has not begun")
	}
	clusters := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace)
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"version":%q}}`, c.Object.ResourceVersion, steps[0])
	if _, err := clusters.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(app.Out, "etcdcluster/%s upgrades to %s\n", name, steps[0])
	if !opts.wait {
		return nil
	}
	err = app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) {
		obj, err := observe.Object(ctx, a, name)
		if err != nil {
			return "", false, err
		}
		done := 0
		for _, m := range obj.Status.MemberStatuses {
			if m.Version == steps[0] && m.Healthy {
				done++
			}
		}
		state := fmt.Sprintf("%d of %d members run %s", done, len(obj.Status.MemberStatuses), steps[0])
		return state, obj.Status.CurrentVersion == steps[0], nil
	})
	if err == nil && len(steps) > 1 {
		fmt.Fprintf(app.Out, "Next step: %s\n", hint.Etcd(a.Place(), "upgrade", name, "--to", opts.to))
	}
	return err
}
