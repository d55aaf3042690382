// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/adopt"
	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
)

type adoptOptions struct {
	dryRun                     dryRun
	back, yes, force, anyScope bool
	image                      string
	timeout                    time.Duration
}

func (app *App) adopt() *cobra.Command {
	opts := &adoptOptions{}
	cmd := &cobra.Command{
		Use: "adopt", GroupID: operate,
		Short: "Replace the operators of v0.9.4 or its fork by those of this release",
		Long: `Replace the operators of v0.9.4 or its fork in the namespace by those of this release. The
pods of etcd stay. The command checks everything first, and prints what it found and what it
will do. Then it stops the old operators, waits until they have ended, installs the CRDs,
rights and operators of this release, and waits until they manage the clusters.

If the command is interrupted, run it again: it continues. A ConfigMap holds the old objects,
and --back restores them.`,
		Example: `  kubectl etcd adopt --dry-run
  kubectl etcd adopt -n databases
  kubectl etcd adopt -n databases --back`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.back {
				return app.runAdoptBack(cmd.Context(), opts)
			}
			return app.runAdopt(cmd.Context(), opts)
		},
	}
	opts.dryRun.bind(cmd, "print the findings and the steps, and change nothing")
	flags := cmd.Flags()
	flags.BoolVar(&opts.back, "back", false, "restore the old operators and CRDs")
	flags.BoolVarP(&opts.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&opts.force, "force", false, "continue in spite of problems; obstacles remain")
	flags.BoolVar(&opts.anyScope, "any-scope", false, "let the backup and restore operators handle all objects in all namespaces, as the fork does")
	flags.StringVar(&opts.image, "image", "", "image of the operators, such as one of a mirror; empty for the image of this release")
	flags.DurationVar(&opts.timeout, "timeout", 5*time.Minute, "how long each step may take")
	return cmd
}

// move returns a move in the namespace of the command line.
func (app *App) move(opts *adoptOptions) (*access.Access, *adopt.Move, error) {
	a, err := app.Open()
	if err != nil {
		return nil, nil, err
	}
	m := adopt.New(a.Dynamic, a.Namespace)
	m.Chosen, m.Image, m.AnyScope = a.Chosen, opts.image, opts.anyScope
	m.Say = func(format string, args ...any) { fmt.Fprintf(app.Out, format+"\n", args...) }
	wait := waitOptions{timeout: opts.timeout, rest: "run the command again to continue"}
	m.Until = func(ctx context.Context, look func(context.Context) (string, bool, error)) error {
		return app.until(ctx, wait, look)
	}
	return a, m, nil
}

func (app *App) runAdopt(ctx context.Context, opts *adoptOptions) error {
	a, m, err := app.move(opts)
	if err != nil {
		return err
	}
	plan, err := m.Plan(ctx)
	if err != nil {
		return err
	}
	printAdoptFindings(app.Out, plan.Findings)
	if plan.Continues {
		fmt.Fprintln(app.Out, "A move has begun here, and the command continues it with the same settings.")
	}
	if err := refusal(&plan.Checked, opts.force); err != nil {
		return err
	}
	printSteps(app.Out, plan.Steps())
	if opts.dryRun {
		return nil
	}
	if err := app.agreed(ctx, a, opts.yes); err != nil {
		return err
	}
	if err := m.Run(ctx, plan); err != nil {
		return fmt.Errorf("%w; run the command again to continue, or %s to go back", err, hint.Etcd(m.Place(), "adopt", "--back"))
	}
	fmt.Fprintf(app.Out, "The move is done. To go back: %s\n", hint.Etcd(m.Place(), "adopt", "--back"))
	return nil
}

func (app *App) runAdoptBack(ctx context.Context, opts *adoptOptions) error {
	a, m, err := app.move(opts)
	if err != nil {
		return err
	}
	back, err := m.PlanBack(ctx)
	if err != nil {
		return err
	}
	printAdoptFindings(app.Out, back.Findings)
	if err := refusal(&back.Checked, opts.force); err != nil {
		return err
	}
	printSteps(app.Out, back.Steps())
	if opts.dryRun {
		return nil
	}
	if err := app.agreed(ctx, a, opts.yes); err != nil {
		return err
	}
	if err := m.RunBack(ctx, back); err != nil {
		return fmt.Errorf("%w; run the command again to continue", err)
	}
	if stopped := back.Stopped(); len(stopped) > 0 {
		fmt.Fprintf(app.Out, "The way back is done. These Deployments have 0 replicas, as before the move: %s\n", strings.Join(stopped, ", "))
		return nil
	}
	fmt.Fprintln(app.Out, "The old operators run again.")
	return nil
}

// refusal is why findings stop the command.
func refusal(found *adopt.Checked, force bool) error {
	switch {
	case found.Has(adopt.Obstacle):
		return errors.New("there are obstacles, and the command has changed nothing")
	case found.Has(adopt.Problem) && !force:
		return errors.New("there are problems, and the command has changed nothing: solve them, or accept them by --force")
	}
	return nil
}

func printAdoptFindings(out io.Writer, findings []adopt.Finding) {
	signs := map[adopt.Level]string{adopt.Note: "note", adopt.Problem: "PROB", adopt.Obstacle: "STOP"}
	for _, f := range findings {
		fmt.Fprintf(out, "%s  %s\n", signs[f.Level], f.Message)
		if f.Fix != "" {
			fmt.Fprintf(out, "      fix: %s\n", f.Fix)
		}
	}
}

func printSteps(out io.Writer, steps []string) {
	fmt.Fprintln(out, "Steps:")
	for i, step := range steps {
		fmt.Fprintf(out, "%3d. %s\n", i+1, step)
	}
}

// agreed asks the user.
func (app *App) agreed(ctx context.Context, a *access.Access, yes bool) error {
	if yes {
		return nil
	}
	fmt.Fprintf(app.Out, "The operators are in %s.\n", where(a))
	fmt.Fprint(app.Out, "Continue? Type yes: ")
	typed, err := readLine(ctx, app.In)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(app.Out)
		return fmt.Errorf("the command has changed nothing: %w", ctx.Err())
	case strings.TrimSpace(typed) == "yes":
		return nil
	case err != nil:
		fmt.Fprintln(app.Out)
		return errors.New("nobody typed yes, and the command has changed nothing: in scripts, use --yes")
	default:
		return errors.New("the answer is not yes, and the command has changed nothing")
	}
}
