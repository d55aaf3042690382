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
)

func (app *App) pauseCommand() *cobra.Command {
	return app.pausing("pause", true, "Stop the operator's work on a cluster",
		"Stop the operator's work on a cluster. The operator then changes no members, and replaces no dead ones. etcd continues to serve.")
}

func (app *App) resumeCommand() *cobra.Command {
	return app.pausing("resume", false, "Resume the operator's work on a paused cluster",
		"Resume the operator's work on a paused cluster.")
}

func (app *App) pausing(use string, paused bool, short, long string) *cobra.Command {
	opts := waitOptions{}
	cmd := &cobra.Command{
		Use: use + " NAME", GroupID: operate, Short: short, Long: long,
		Example:           "  kubectl etcd " + use + " orders",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: app.clusterNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.setPaused(cmd.Context(), args[0], paused, opts)
		},
	}
	opts.bind(cmd, time.Minute)
	return cmd
}

func (app *App) setPaused(ctx context.Context, name string, paused bool, opts waitOptions) error {
	a, obj, err := app.openCluster(ctx, name)
	if err != nil {
		return err
	}
	verb := "resumed"
	if paused {
		verb = "paused"
	}
	if obj.Spec.Paused != paused {
		patch := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
		if _, err := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if opts.wait {
		waiting := app.waitingFor("operator", a.Place())
		err := app.until(ctx, opts, func(ctx context.Context) (string, bool, error) {
			obj, err := observe.Object(ctx, a, name)
			if err != nil {
				return "", false, err
			}
			if obj.Status.ControlPaused == paused {
				return "", true, nil
			}
			return waiting(), false, nil
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(app.Out, "etcdcluster/%s %s\n", name, verb)
	return nil
}
