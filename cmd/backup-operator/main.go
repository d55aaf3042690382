// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The etcd-backup-operator takes the backups that EtcdBackups ask for: those in its namespace,
// or with -cluster-wide the annotated ones in all namespaces.
package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/internal/version"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/backup"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
)

const program = "etcd-backup-operator"

func main() { os.Exit(operator.Main(context.Background(), operate)) }

// options are the values of the command line's flags.
type options struct {
	operator.Flags
	volumeDir string
}

// operate runs the backup operator and returns its exit code.
func operate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, stderr)
	return operator.Operate(program, opts.Flags, err, stdout, stderr, func(log *logrus.Entry) error {
		return operator.Program{
			Name: program, Flags: opts.Flags, Log: log,
			New: func(_ context.Context, s operator.Surroundings) (operator.Controller, error) {
				return backup.New(backup.Config{
					Namespace:   s.Self.Namespace,
					ClusterWide: opts.ClusterWide,
					AnyScope:    opts.AnyScope,
					CreateCRD:   opts.CreateCRD,
					Version:     version.Version,
					VolumeDir:   opts.volumeDir,
					Kube:        s.Clients.Kube,
					Etcd:        s.Clients.Etcd,
					Dynamic:     s.Clients.Dynamic,
					CRDs:        s.Clients.CRDs,
					Recorder:    s.Recorder,
					Registry:    s.Registry,
					Logger:      s.Log,
					Clock:       clock.RealClock{},
				})
			},
		}.Run(ctx)
	})
}

// parseFlags reads the command line. It writes errors and the usage to out. The error is
// flag.ErrHelp if the caller asked for help.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	err := o.Parse(program, api.EtcdBackupResourceKind, fleet.ScopeSetting, args, out, func(fs *flag.FlagSet) {
		fs.BoolVar(&o.AnyScope, "any-scope", false, "with -cluster-wide: manage all EtcdBackups in all namespaces, whatever their annotation, as the fork of v0.9.4 does; no other operator may manage EtcdBackups then")
		fs.StringVar(&o.volumeDir, "volume-dir", "", "`directory` for backups with storageType Volume, on a PersistentVolumeClaim; default: no such backups")
	})
	if err != nil {
		return options{}, err
	}
	return o, nil
}
