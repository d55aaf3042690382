// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore manages EtcdRestores: each has a goroutine of its own,
// which is a restore.Restore. They share the server of backups, which runs while the
// controller does.
package restore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/controller/definition"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/restore"
)

// Service leads clients to this instance, while it runs.
type Service interface {
	// Run keeps it until ctx ends.
	Run(ctx context.Context)
	// Problem is why it does not lead here; nil: it does, as far as is known.
	Problem() error
}

// Config is what a Controller works with.
type Config struct {
	// Namespace is the one that is watched, unless ClusterWide.
	Namespace   string
	ClusterWide bool
	// AnyScope manages the objects without the annotation too, with ClusterWide.
	AnyScope bool
	// CreateCRD registers the CRD of EtcdRestores, or updates an older one. If
	// false, the controller waits until somebody else has.
	CreateCRD bool
	// Version of this operator.
	Version string
	// VolumeDir is where backups of backupStorageType Volume are; "": there are none.
	VolumeDir string
	// ServeAddr is where backups are served.
	ServeAddr string
	// URL is that under which they are: the name of a restore follows.
	URL string
	// Service is what makes URL lead to this instance.
	Service Service

	Kube     kubernetes.Interface
	Etcd     versioned.Interface
	Dynamic  dynamic.Interface
	CRDs     apiextensions.Interface
	Recorder record.EventRecorder
	Registry prometheus.Registerer
	Logger   *logrus.Entry
	Clock    clock.WithTicker

	// OpenLocation opens stores; nil: pkg/location does.
	OpenLocation restore.OpenLocation
	// Listen listens on ServeAddr; nil: package net does.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// bound says why an EtcdRestore that can't be read must stay. From its commit point until its
// success, the EtcdCluster that it is to make may be nowhere but in its status.
func bound(u *unstructured.Unstructured) string {
	_, cluster, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "cluster")
	_, backup, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "backup")
	succeeded, _, _ := unstructured.NestedBool(u.Object, "status", "succeeded")
	if !cluster || !backup || succeeded {
		return ""
	}
	return "the restore has begun, and the EtcdCluster that it makes may be in its status alone"
}

// Controller manages the EtcdRestores in its scope.
type Controller struct {
	cfg        Config
	log        *logrus.Entry
	fleet      *fleet.Fleet[*api.EtcdRestore]
	source     *fleet.Source[*api.EtcdRestore]
	definition *definition.Keeper
	server     *backupserver.Server
	// makeRestore is restore.New, but in tests.
	makeRestore func(*api.EtcdRestore) (fleet.Runner[*api.EtcdRestore], error)
	waiting     fleet.Waiting
}

// New returns a Controller and registers its metrics; nothing else happens before
// Run.
func New(cfg Config) (*Controller, error) {
	if cfg.Namespace == "" && !cfg.ClusterWide {
		return nil, errors.New("the controller needs the namespace to watch, or must be cluster-wide")
	}
	if cfg.ClusterWide {
		cfg.Namespace = metav1.NamespaceAll
	}
	if cfg.Listen == nil {
		cfg.Listen = (&net.ListenConfig{}).Listen
	}
	c := &Controller{cfg: cfg, log: cfg.Logger.WithField("pkg", "controller")}
	c.waiting.For("the controller to start")
	want, err := crd.EtcdRestore()
	if err != nil {
		return nil, err
	}
	c.definition = definition.New(definition.Config{
		CRDs: cfg.CRDs, Want: want, Create: cfg.CreateCRD, Version: cfg.Version, Clock: cfg.Clock, Log: c.log, Waiting: &c.waiting,
	})
	c.source = &fleet.Source[*api.EtcdRestore]{
		Dynamic:     cfg.Dynamic,
		Resource:    api.SchemeGroupVersion.WithResource(api.EtcdRestoreResourcePlural),
		Kind:        api.EtcdRestoreResourceKind,
		New:         func() *api.EtcdRestore { return &api.EtcdRestore{} },
		ReasonField: "reason",
		Namespace:   cfg.Namespace,
		ClusterWide: cfg.ClusterWide,
		AnyScope:    cfg.AnyScope,
		Finalizer:   api.RestoreFinalizer,
		Bound:       bound,
		Missing:     c.definition.Missing,
		Recorder:    cfg.Recorder,
		Log:         c.log,
		Clock:       cfg.Clock,
	}
	metrics, err := restore.NewMetrics(cfg.Registry)
	if err != nil {
		return nil, err
	}
	c.server = backupserver.New(backupserver.Config{Logger: cfg.Logger.WithField("pkg", "backupserver")})
	shared := restore.Config{
		Kube:      cfg.Kube,
		Etcd:      cfg.Etcd,
		Dynamic:   cfg.Dynamic,
		Server:    c.server,
		URL:       cfg.URL,
		Reached:   cfg.Service.Problem,
		VolumeDir: cfg.VolumeDir,
		Recorder:  cfg.Recorder,
		Metrics:   metrics,
		Logger:    cfg.Logger.WithField("pkg", "restore"),
		Clock:     cfg.Clock,

		StatusMissing: c.definition.Missing,

		OpenLocation: cfg.OpenLocation,
	}
	c.makeRestore = func(obj *api.EtcdRestore) (fleet.Runner[*api.EtcdRestore], error) {
		return restore.New(shared, obj)
	}
	c.fleet = fleet.New(fleet.Config[*api.EtcdRestore]{
		Noun: "restore",
		New: func(obj *api.EtcdRestore) (fleet.Runner[*api.EtcdRestore], error) {
			return c.makeRestore(obj)
		},
		Recorder: cfg.Recorder, Log: c.log, Clock: cfg.Clock,
	})
	err = c.fleet.RegisterSize(cfg.Registry, prometheus.GaugeOpts{
		Namespace: "etcd_restore_operator", Name: "restores",
		Help: "EtcdRestores that the operator manages.",
	}, c.Ready)
	return c, err
}

// Ready returns nil while the controller sees all of its restores; the error says
// what it waits for.
func (c *Controller) Ready() error { return c.waiting.Ready() }

// Run manages restores until ctx ends, and returns when everything that it
// started has ended. It must be called once.
func (c *Controller) Run(ctx context.Context) error {
	defer c.waiting.For("nothing: it has ended")
	if c.initResource(ctx) != nil {
		return nil // ctx has ended
	}
	listener, err := c.cfg.Listen(ctx, "tcp", c.cfg.ServeAddr)
	if err != nil {
		return fmt.Errorf("listen on -serve-addr %s: %w", c.cfg.ServeAddr, err)
	}
	// The server outlives the restores, which withdraw what they offer.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop() // without a server nothing comes back
		served <- c.server.Run(serving, listener)
	}()
	err = c.follow(ctx)
	stopServing()
	return errors.Join(err, <-served)
}

// follow manages restores until ctx ends.
func (c *Controller) follow(ctx context.Context) error {
	_, informer := c.source.Informer(ctx, c.fleet)
	var running sync.WaitGroup
	defer func() { // in this order: nobody starts a restore any more, then all end, and then the server
		running.Wait()
		c.source.Wait()
		c.fleet.Wait()
	}()
	running.Go(func() { c.cfg.Service.Run(ctx) })
	c.waiting.For("the cache of EtcdRestores: the role of the operator's service account must allow to list and watch them")
	running.Go(func() { c.definition.Keep(ctx) })
	running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitFor(ctx, "EtcdRestores", informer.HasSyncedChecker()) {
		return nil
	}
	c.waiting.Over()
	c.log.WithField("restores", c.fleet.Size()).Infof("managing the EtcdRestores in %s", fleet.Scope(c.cfg.ClusterWide, c.cfg.AnyScope, c.cfg.Namespace))
	<-ctx.Done()
	return nil
}

// initResource sees to it that the API server serves EtcdRestores. Its only error
// is that of ctx.
func (c *Controller) initResource(ctx context.Context) error {
	c.waiting.For(fmt.Sprintf("the CustomResourceDefinition %s", api.EtcdRestoreCRDName))
	return c.definition.Init(ctx)
}
