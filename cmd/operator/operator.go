// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/internal/leader"
	"github.com/etcd-operator/etcd-operator/internal/pod"
	"github.com/etcd-operator/etcd-operator/internal/serve"
	"github.com/etcd-operator/etcd-operator/internal/version"
	"github.com/etcd-operator/etcd-operator/pkg/controller"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/scheme"
)

// The Leases that operators compete for. Those of one namespace have theirs in
// it. Those that run with -cluster-wide share one, wherever they are: each of
// them would take care of the same clusters. So one of each kind can work side by
// side, in one namespace or in two.
const (
	leaseName            = "etcd-operator"
	clusterWideLease     = "etcd-operator-cluster-wide"
	clusterWideNamespace = metav1.NamespaceDefault
)

// leaseOf is the Lease for an operator in a namespace.
func leaseOf(namespace string, clusterWide bool) (inNamespace, name string) {
	if clusterWide {
		return clusterWideNamespace, clusterWideLease
	}
	return namespace, leaseName
}

// run is the operator from its options to its end. It returns nil if ctx ended
// it, and when it returns all that it started has ended.
func run(ctx context.Context, opts options, log *logrus.Entry) error {
	log.WithFields(logrus.Fields{"version": version.Version, "git": version.GitSHA}).Info("starting")
	api, self, err := connect(opts.kubeconfig, os.Getenv)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.listenAddr)
	if err != nil {
		return fmt.Errorf("listen on -listen-addr %s: %w", opts.listenAddr, err)
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
	err = work(working, opts, api, self, registry, &ready, log)
	stopServing()
	return errors.Join(err, <-served)
}

// work waits to lead, and takes care of clusters while it does.
func work(ctx context.Context, opts options, api *clients, self pod.Pod, registry *prometheus.Registry, ready *readiness, log *logrus.Entry) error {
	image := opts.operatorImage
	if image == "" {
		var err error
		image, err = self.Image(ctx, api.kube.CoreV1(), program, log)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find the image of the init container of members (or name it with -operator-image): %w", err)
		}
	}
	recorder, stopEvents := eventRecorder(api.kube)
	defer stopEvents()
	ctrl, err := controller.New(controller.Config{
		Namespace:     self.Namespace,
		ClusterWide:   opts.clusterWide,
		CreateCRD:     opts.createCRD,
		Version:       version.Version,
		OperatorImage: image,
		GCInterval:    opts.gcInterval,
		ChaosLevel:    opts.chaosLevel,
		Kube:          api.kube,
		EtcdClusters:  api.etcdClusters,
		Dynamic:       api.dynamic,
		CRDs:          api.crds,
		Recorder:      recorder,
		Registry:      registry,
		Logger:        log,
		Clock:         clock.RealClock{},
		Rand:          rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), //nolint:gosec // chooses victims of tests
	})
	if err != nil {
		return err
	}
	namespace, name := leaseOf(self.Namespace, opts.clusterWide)
	elector, err := leader.New(leader.Config{
		Leases:    api.leases.CoordinationV1(),
		Namespace: namespace, Name: name, Identity: identity(self, opts.clusterWide),
		Logger: log.WithField("pkg", "leader"),
	})
	if err != nil {
		return err
	}
	ready.of(elector, ctrl)
	return elector.Run(ctx, ctrl.Run)
}

// identity tells instances apart, also those of several namespaces.
func identity(self pod.Pod, clusterWide bool) string {
	if clusterWide {
		return self.Namespace + "/" + self.Name
	}
	return self.Name
}

// readiness is what /readyz answers. An instance is ready if it leads and sees
// all of its clusters, or if it stands by: another instance holds the Lease, and
// this one reads it. If only the leader were ready, a rolling update would wait
// for ever: the new pod for the Lease, the old one for the new pod to be ready.
type readiness struct{ parts atomic.Pointer[readyParts] }

type readyParts struct {
	elector *leader.Elector
	ctrl    *controller.Controller
}

func (r *readiness) of(e *leader.Elector, c *controller.Controller) { r.parts.Store(&readyParts{e, c}) }

func (r *readiness) check() (says string, err error) {
	parts := r.parts.Load()
	switch {
	case parts == nil:
		return "", errors.New("starting")
	case parts.elector.Leading():
		return "ok", parts.ctrl.Ready()
	default:
		return "ok: standing by for " + parts.elector.Watched(), parts.elector.StandingBy()
	}
}

// eventRecorder writes events to the API server until it is stopped.
//
// The defaults of client-go merge events of one object after ten that are alike,
// and drop them after 25 in a row; a cluster that is upgraded or loses nodes has
// more to tell than that.
func eventRecorder(kube kubernetes.Interface) (record.EventRecorder, func()) {
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{
		BurstSize: 200,
		QPS:       1. / 30,
		MaxEvents: 100,
	})
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: kube.CoreV1().Events(metav1.NamespaceAll)})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: program}), broadcaster.Shutdown
}
