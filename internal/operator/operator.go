// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator holds what the operators' binaries share: clients of the API server, leader
// election, /readyz and /metrics, events, and an orderly shutdown.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/record"

	"github.com/etcd-operator/etcd-operator/internal/leader"
	"github.com/etcd-operator/etcd-operator/internal/pod"
	"github.com/etcd-operator/etcd-operator/internal/serve"
	"github.com/etcd-operator/etcd-operator/internal/version"
)

// Controller is the work of an operator.
type Controller interface {
	// Run works until ctx ends. It returns after everything that it started has ended.
	Run(ctx context.Context) error
	// Ready returns nil while the controller's caches are in sync. The error says what the
	// controller waits for.
	Ready() error
}

// Surroundings are what the operator gives its Controller.
type Surroundings struct {
	Clients  *Clients
	Self     pod.Pod
	Recorder record.EventRecorder
	Registry *prometheus.Registry
	Log      *logrus.Entry
}

// Program is an operator.
type Program struct {
	// Name of the binary, of its Lease, and of the source of its events.
	Name  string
	Flags Flags
	Log   *logrus.Entry
	// New returns the Controller. It may send requests to the API server until ctx ends.
	New func(ctx context.Context, s Surroundings) (Controller, error)
}

// Run runs an operator until ctx ends, and then returns nil. It returns after everything that
// it started has ended, but for what sends the last events. If another instance may lead by now, it
// returns leader.ErrLost and waits for nothing: the process must exit at once.
func (p Program) Run(ctx context.Context) error {
	p.Log.WithFields(logrus.Fields{"version": version.Version, "git": version.GitSHA}).Info("starting")
	clients, self, err := connect(p.Name, p.Flags.Kubeconfig, os.Getenv)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Flags.ListenAddr)
	if err != nil {
		return fmt.Errorf("listen on -listen-addr %s: %w", p.Flags.ListenAddr, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var ready readiness

	// The server outlives the work, so that metrics include its end.
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() {
		defer stopWork() // without a server there is no readiness
		served <- serve.Run(serving, listener, serve.Handler(ready.check, registry))
	}()
	err = p.work(working, Surroundings{Clients: clients, Self: self, Registry: registry, Log: p.Log}, &ready)
	stopServing()
	if errors.Is(err, leader.ErrLost) {
		return err // work that hangs ends with the process
	}
	return errors.Join(err, <-served)
}

// work waits for the Lease, and runs the Controller while this instance leads.
func (p Program) work(ctx context.Context, s Surroundings, ready *readiness) error {
	recorder, stopEvents := eventRecorder(p.Name, s.Clients.Kube)
	defer stopEvents()
	s.Recorder = recorder
	ctrl, err := p.New(ctx, s)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	namespace, name := leaseOf(p.Name, s.Self.Namespace, p.Flags.ClusterWide)
	elector, err := leader.New(leader.Config{
		Leases:    s.Clients.leases.CoordinationV1(),
		Namespace: namespace, Name: name, Identity: identity(s.Self, p.Flags.ClusterWide),
		Logger: p.Log.WithField("pkg", "leader"),
	})
	if err != nil {
		return err
	}
	ready.of(elector, ctrl)
	return elector.Run(ctx, ctrl.Run)
}
