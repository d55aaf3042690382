// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The etcd-restore-operator restores clusters from backups as EtcdRestores ask: those in its
// namespace, or with -cluster-wide the annotated ones in all namespaces.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/internal/version"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
	"github.com/etcd-operator/etcd-operator/pkg/controller/restore"
	"github.com/etcd-operator/etcd-operator/pkg/leaderservice"
)

const program = "etcd-restore-operator"

// servicePort is the port of the Service, as in v0.9.4.
const servicePort = 19999

func main() { os.Exit(operator.Main(context.Background(), operate)) }

// options are the values of the command line's flags.
type options struct {
	operator.Flags
	volumeDir string
	serveAddr string
}

// operate runs the restore operator and returns its exit code.
func operate(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, stderr)
	return operator.Operate(program, opts.Flags, err, stdout, stderr, func(log *logrus.Entry) error {
		return operator.Program{
			Name: program, Flags: opts.Flags, Log: log,
			New: func(_ context.Context, s operator.Surroundings) (operator.Controller, error) {
				port, err := portOf(opts.serveAddr)
				if err != nil {
					return nil, err
				}
				service := program
				if opts.ClusterWide { // both kinds can run in one namespace
					service += "-cluster-wide"
				}
				return restore.New(restore.Config{
					Namespace:   s.Self.Namespace,
					ClusterWide: opts.ClusterWide,
					AnyScope:    opts.AnyScope,
					CreateCRD:   opts.CreateCRD,
					Version:     version.Version,
					VolumeDir:   opts.volumeDir,
					ServeAddr:   opts.serveAddr,
					URL:         fmt.Sprintf("http://%s.%s.svc:%d%s", service, s.Self.Namespace, servicePort, backupserver.Path),
					Service: leaderservice.New(leaderservice.Config{
						Kube: s.Clients.Kube, Namespace: s.Self.Namespace, Name: service, Pod: s.Self.Name,
						Port: servicePort, ListenPort: port, Logger: s.Log,
					}),
					Kube:     s.Clients.Kube,
					Etcd:     s.Clients.Etcd,
					Dynamic:  s.Clients.Dynamic,
					CRDs:     s.Clients.CRDs,
					Recorder: s.Recorder,
					Registry: s.Registry,
					Logger:   s.Log,
					Clock:    clock.RealClock{},
				})
			},
		}.Run(ctx)
	})
}

// portOf returns the port of an address to listen on.
func portOf(address string) (int32, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("-serve-addr %s: %w", address, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("-serve-addr %s: the port must be a number from 1 to 65535", address)
	}
	return int32(port), nil // it has 16 bits
}

// parseFlags reads the command line. It writes errors and the usage to out. The error is
// flag.ErrHelp if the caller asked for help.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	err := o.Parse(program, api.EtcdRestoreResourceKind, fleet.ScopeSetting, args, out, func(fs *flag.FlagSet) {
		fs.BoolVar(&o.AnyScope, "any-scope", false, "with -cluster-wide: manage all EtcdRestores in all namespaces, whatever their annotation, as the fork of v0.9.4 does; no other operator may manage EtcdRestores then")
		fs.StringVar(&o.volumeDir, "volume-dir", "", "`directory` of backups with backupStorageType Volume, on a PersistentVolumeClaim; default: no such backups")
		fs.StringVar(&o.serveAddr, "serve-addr", "0.0.0.0:19999", "`address` of the HTTP server that sends backups to the first members of restored clusters")
	})
	if err != nil {
		return options{}, err
	}
	return o, nil
}
