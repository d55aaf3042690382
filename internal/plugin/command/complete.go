// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
)

// completionTime is how long a person at a prompt waits for names.
const completionTime = 3 * time.Second

// clusterNames completes the first argument with the names of EtcdClusters.
func (app *App) clusterNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return app.namesOf(cmd, func(ctx context.Context) ([]string, error) {
		a, err := app.Open()
		if err != nil {
			return nil, err
		}
		list, err := observe.Objects(ctx, a, a.Namespace)
		var names []string
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names, err
	})
}

// severalClusterNames completes arguments with the names of EtcdClusters that are not
// there yet.
func (app *App) severalClusterNames(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	names, directive := app.clusterNames(cmd, nil, toComplete)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
}

// memberNames completes an argument with the names of members, of the cluster that the
// arguments before name, or of all.
func (app *App) memberNames(cmd *cobra.Command, cluster string) ([]string, cobra.ShellCompDirective) {
	return app.namesOf(cmd, func(ctx context.Context) ([]string, error) {
		a, err := app.Open()
		if err != nil {
			return nil, err
		}
		selector := "app=etcd,etcd_cluster"
		if cluster != "" {
			selector += "=" + cluster
		}
		list, err := a.Kube.CoreV1().Pods(a.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, nil
	})
}

// namesOf lists names for a shell, which shows no errors.
func (app *App) namesOf(cmd *cobra.Command, list func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	names, err := list(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
