// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/operator"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
)

// options are the values of the command line's flags.
type options struct {
	operator.Flags
	gcInterval    time.Duration
	chaosLevel    int
	operatorImage string
}

// parseFlags reads the command line. It writes errors and the usage to out. The error is
// flag.ErrHelp if the caller asked for help.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet(program, flag.ContinueOnError)
	fs.SetOutput(out)
	o.Register(fs, api.EtcdClusterResourceKind, fleet.ScopeSetting)
	fs.DurationVar(&o.gcInterval, "gc-interval", 10*time.Minute, "time between searches for pods, Services and PodDisruptionBudgets whose EtcdCluster is gone; 0: never")
	fs.IntVar(&o.chaosLevel, "chaos-level", -1, "DO NOT USE IN PRODUCTION: kill members at random, every 30s. 1: one pod with a probability of 50 %. 2: up to five pods. Below 1: none")
	fs.StringVar(&o.operatorImage, "operator-image", "", "`image` of the members' init containers; default: the image of the operator's own pod")
	fs.Usage = func() {
		fmt.Fprintf(out, "Usage:\n  %s [flags]\n  %s fetch-backup, restore-backup, check-source, check-tool, copy-source [flags]   the init containers of a member that starts on a backup or a copy\n  %s serve-data [flags]   gives the data of a member without a quorum\n\nFlags:\n", program, program, program)
		fs.PrintDefaults()
		fmt.Fprint(out, "\nEnvironment of the operator's pod:\n  MY_POD_NAME, MY_POD_NAMESPACE   required in a pod\n")
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
	if o.chaosLevel > controller.MaxChaosLevel {
		return fmt.Errorf("-chaos-level %d: the highest is %d", o.chaosLevel, controller.MaxChaosLevel)
	}
	return operator.CheckArgs(rest)
}
