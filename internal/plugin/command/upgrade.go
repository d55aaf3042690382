// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
		Long: `Plan an upgrade of etcd: the versions on the way, and what stands against it now. Without
--plan, begin the first step if nothing does. The operator upgrades one member after the
other. Call it again for each further step.`,
		Example:           "  kubectl etcd upgrade orders --to 3.7.3 --plan\n  kubectl etcd upgrade orders --to 3.7.3",
		Args:              cobra.ExactArgs(1),
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
		fmt.Fprintf(app.Out, "EtcdCluster %s runs etcd %s already.\n", name, status.CurrentVersion)
		return nil
	}
	s := summary.Of(c, nil)
	against := upgradeplan.Against(s, steps[0])
	fmt.Fprintf(app.Out, "EtcdCluster %s runs etcd %s.\n", name, status.CurrentVersion)
	for i, step := range steps {
		fmt.Fprintf(app.Out, "  step %d: %s, %d members one after the other, the leader last\n", i+1, step, s.Voters)
	}
	if upgradeplan.LeavesMinor(status.CurrentVersion, steps[0]) {
		fmt.Fprintln(app.Out, "etcd can't be downgraded afterwards: back up first (kubectl etcd backup "+name+").")
	}
	for _, reason := range against {
		fmt.Fprintln(app.Out, "  against it now: "+reason)
	}
	switch {
	case opts.plan && len(against) > 0:
		return exit(1)
	case opts.plan:
		fmt.Fprintf(app.Out, "Nothing stands against it. Begin with: kubectl etcd upgrade %s --to %s\n", name, opts.to)
		return nil
	case len(against) > 0:
		return fmt.Errorf("the upgrade is not begun")
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
		fmt.Fprintf(app.Out, "The next step: kubectl etcd upgrade %s --to %s\n", name, opts.to)
	}
	return err
}
