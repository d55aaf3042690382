// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/internal/plugin/doctor"
)

func (app *App) doctor() *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:     "doctor [NAME]",
		GroupID: look,
		Short:   "Find what is wrong with Kubernetes, the operators or a cluster",
		Long: `Check the version of Kubernetes, the API, your rights, the operators and their rights, DNS
and StorageClasses. With a name, check that cluster too: quorum, Services, budget,
volumes, quota, certificates and backups. Each finding names its fix.

The exit code is 1 if there is a failure, and 0 if there are only warnings.`,
		Example:           "  kubectl etcd doctor\n  kubectl etcd doctor orders",
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			findings, err := app.examine(cmd.Context(), args)
			if err != nil {
				return err
			}
			if err := format.write(app.Out, findings, nil, func(out io.Writer) error { return printFindings(out, findings) }); err != nil {
				return err
			}
			if doctor.Worst(findings) == doctor.Failure {
				return exit(1)
			}
			return nil
		},
	}
	format.bind(cmd)
	return cmd
}

func (app *App) examine(ctx context.Context, args []string) ([]doctor.Finding, error) {
	a, o, end, err := app.observer()
	if err != nil {
		return nil, err
	}
	defer end()
	d := &doctor.Doctor{Access: a, Now: app.Clock.Now}
	if answers := d.Environment(ctx); answers && len(args) == 1 {
		c, err := o.Observe(ctx, args[0])
		switch {
		case err == nil:
			d.Cluster(ctx, c)
		case ctx.Err() != nil:
			return nil, err
		default: // the other findings may say why
			d.Unread(args[0], err)
		}
	}
	return d.Findings(), nil
}

func printFindings(out io.Writer, findings []doctor.Finding) error {
	signs := map[doctor.Level]string{doctor.OK: "ok  ", doctor.Unknown: "?   ", doctor.Warning: "WARN", doctor.Failure: "FAIL"}
	for _, f := range findings {
		if _, err := fmt.Fprintf(out, "%s  %s: %s\n", signs[f.Level], f.Check, f.Message); err != nil {
			return err
		}
		if f.Fix != "" {
			fmt.Fprintf(out, "      fix: %s\n", f.Fix)
		}
	}
	return nil
}
