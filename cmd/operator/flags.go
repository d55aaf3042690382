// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/checkdns"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
)

// options are what the command line says.
type options struct {
	listenAddr    string
	createCRD     bool
	clusterWide   bool
	gcInterval    time.Duration
	chaosLevel    int
	operatorImage string
	kubeconfig    string
	version       bool
}

// parseFlags reads the command line. It tells what is wrong on out, with the
// usage; the error is flag.ErrHelp where that was asked for.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.listenAddr, "listen-addr", "0.0.0.0:8080", "`address` of the HTTP server for /readyz and /metrics")
	fs.BoolVar(&o.createCRD, "create-crd", true, "register the CustomResourceDefinition of EtcdClusters, or update an older one; false: wait until it is there")
	fs.BoolVar(&o.clusterWide, "cluster-wide", false, "take care of the EtcdClusters in all namespaces that are annotated "+fleet.ScopeAnnotation+"="+fleet.ScopeClusterWide+", instead of those in the operator's namespace that are not")
	fs.DurationVar(&o.gcInterval, "gc-interval", 10*time.Minute, "time between looks for pods, Services and PodDisruptionBudgets whose EtcdCluster is gone; 0: never")
	fs.IntVar(&o.chaosLevel, "chaos-level", -1, "DO NOT USE IN PRODUCTION: kill members at random, to test how clusters recover; 1: one pod with a probability of 50 % every 30s, 2: up to five; below 1: none")
	fs.StringVar(&o.operatorImage, "operator-image", "", "`image` of the init container check-dns of members; default: the image of the operator's own pod")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; default: as a pod does")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	fs.Usage = func() {
		fmt.Fprintf(out, "Usage:\n  %s [flags]\n  %s check-dns [flags]   the init container of members, see %s check-dns -h\n\nFlags:\n", program, program, program)
		fs.PrintDefaults()
		fmt.Fprintf(out, "\nEnvironment of the operator's pod:\n  MY_POD_NAME, MY_POD_NAMESPACE   required in a pod\n  %s   used by check-dns\n", checkdns.PodIPEnv)
	}
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if err := o.check(fs.Args()); err != nil {
		fmt.Fprintf(out, "%s: %v\n", program, err)
		fs.Usage()
		return options{}, err
	}
	return o, nil
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: a flag's value follows an equals sign, as in -create-crd=false", rest[0])
	case o.chaosLevel > controller.MaxChaosLevel:
		return fmt.Errorf("-chaos-level %d: the highest is %d", o.chaosLevel, controller.MaxChaosLevel)
	}
	return nil
}
