// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube is all programs of the local Kubernetes but kubectl and etcd: the name
// by which it is called says which one it is. They share most of their packages, and
// one link of all costs a fraction of one link each.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // for time zones of CronJobs

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // as the programs of Kubernetes do
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as the programs of Kubernetes do
	_ "k8s.io/component-base/metrics/prometheus/version"  // as the programs of Kubernetes do
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	command := func(c *cobra.Command) int { return cli.Run(c) }
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		os.Exit(command(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(command(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(command(scheduler.NewSchedulerCommand()))
	case "kube-proxy":
		os.Exit(command(proxy.NewProxyCommand()))
	case "kubelet":
		os.Exit(command(kubeletCommand(kubelet.NewKubeletCommand)))
	case "coredns":
		dns()
	case "local-path-provisioner":
		os.Exit(command(provisionerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "%s is no program of Kubernetes: call this by the name of one\n", name)
		os.Exit(2)
	}
}

// kubeletCommand calls what makes the kubelet's command. Since Kubernetes 1.34 it takes a context.
func kubeletCommand[F func() *cobra.Command | func(context.Context) *cobra.Command](create F) *cobra.Command {
	switch create := any(create).(type) {
	case func(context.Context) *cobra.Command:
		return create(context.Background())
	case func() *cobra.Command:
		return create()
	}
	return nil
}
