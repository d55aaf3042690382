// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		list, err := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace).List(ctx, metav1.ListOptions{})
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
