// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator is what the operators' binaries have in common: the way to the
// API server, leader election, /readyz and /metrics, events, and an orderly end.
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
	// Run works until ctx ends, and returns when all that it started has ended.
	Run(ctx context.Context) error
	// Ready returns nil while the controller sees all of its objects; the error
	// says what it waits for.
	Ready() error
}

// Surroundings are what a Controller is made with.
type Surroundings struct {
	Clients  *Clients
	Self     pod.Pod
	Recorder record.EventRecorder
	Registry *prometheus.Registry
	Log      *logrus.Entry
}

// Program is an operator.
type Program struct {
	// Name of the binary, of its Lease and of the source of its events.
	Name  string
	Flags Flags
	Log   *logrus.Entry
	// New makes the Controller. It may ask the API server first, until ctx ends.
	New func(ctx context.Context, s Surroundings) (Controller, error)
}

// Run is an operator from its options to its end. It returns nil if ctx ended
// it, and when it returns all that it started has ended.
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

	// The server outlives the work, so that metrics tell about its end.
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() {
		defer stopWork() // who can't be asked can't be ready
		served <- serve.Run(serving, listener, serve.Handler(ready.check, registry))
	}()
	err = p.work(working, Surroundings{Clients: clients, Self: self, Registry: registry, Log: p.Log}, &ready)
	stopServing()
	return errors.Join(err, <-served)
}

// work waits to lead, and lets the Controller work while it does.
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
