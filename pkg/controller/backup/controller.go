// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup manages EtcdBackups: each has a goroutine of its own,
// which is a backup.Backup.
package backup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backup"
	"github.com/etcd-operator/etcd-operator/pkg/controller/definition"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// Config is what a Controller works with.
type Config struct {
	// Namespace is the one that is watched, unless ClusterWide.
	Namespace   string
	ClusterWide bool
	// AnyScope manages the objects without the annotation too, with ClusterWide.
	AnyScope bool
	// CreateCRD registers the CRD of EtcdBackups, or updates an older one. If
	// false, the controller waits until somebody else has.
	CreateCRD bool
	// Version of this operator.
	Version string
	// VolumeDir is where backups of storageType Volume go; "": there are none.
	VolumeDir string

	Kube     kubernetes.Interface
	Etcd     versioned.Interface
	Dynamic  dynamic.Interface
	CRDs     apiextensions.Interface
	Recorder record.EventRecorder
	Registry prometheus.Registerer
	Logger   *logrus.Entry
	Clock    clock.WithTicker

	// Members makes clients of members; nil: etcd's own.
	Members func(*tls.Config, etcd.Credentials) snapshot.Client
	// OpenLocation opens stores; nil: pkg/location does.
	OpenLocation backup.OpenLocation
}

const (
	// testsAtOnce bounds the tests that restore backups.
	testsAtOnce = 2
	// waitingBytes is how many bytes of changes may wait for stores, in the logs of all EtcdBackups. The
	// deployments limit the memory to 512 MiB. The recorders may hold twice as much, and Go lets garbage grow
	// to as much as is in use.
	waitingBytes = 96 << 20
)

// Controller manages the EtcdBackups in its scope.
type Controller struct {
	cfg        Config
	log        *logrus.Entry
	fleet      *fleet.Fleet[*api.EtcdBackup]
	source     *fleet.Source[*api.EtcdBackup]
	definition *definition.Keeper
	// makeBackup is backup.New, but in tests.
	makeBackup func(*api.EtcdBackup) (fleet.Runner[*api.EtcdBackup], error)
	waiting    fleet.Waiting
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
	c := &Controller{cfg: cfg, log: cfg.Logger.WithField("pkg", "controller")}
	c.waiting.For("the controller to start")
	want, err := crd.EtcdBackup()
	if err != nil {
		return nil, err
	}
	c.definition = definition.New(definition.Config{
		CRDs: cfg.CRDs, Want: want, Create: cfg.CreateCRD, Version: cfg.Version, Clock: cfg.Clock, Log: c.log, Waiting: &c.waiting,
	})
	c.source = &fleet.Source[*api.EtcdBackup]{
		Dynamic:     cfg.Dynamic,
		Resource:    api.SchemeGroupVersion.WithResource(api.EtcdBackupResourcePlural),
		Kind:        api.EtcdBackupResourceKind,
		New:         func() *api.EtcdBackup { return &api.EtcdBackup{} },
		ReasonField: "Reason",
		Namespace:   cfg.Namespace,
		ClusterWide: cfg.ClusterWide,
		AnyScope:    cfg.AnyScope,
		Finalizer:   api.BackupPeriodicFinalizer,
		Missing:     c.definition.Missing,
		Recorder:    cfg.Recorder,
		Log:         c.log,
		Clock:       cfg.Clock,
	}
	metrics, err := backup.NewMetrics(cfg.Registry)
	if err != nil {
		return nil, err
	}
	shared := backup.Config{
		Kube:      cfg.Kube,
		Etcd:      cfg.Etcd,
		Namespace: cfg.Namespace,
		VolumeDir: cfg.VolumeDir,
		Slots:     backup.NewSlots(cfg.ClusterWide),
		Keys:      backup.NewKeys(),
		Tests:     backup.NewTests(testsAtOnce),
		Waiting:   recorder.NewBudget(waitingBytes),
		Recorder:  cfg.Recorder,
		Metrics:   metrics,
		Logger:    cfg.Logger.WithField("pkg", "backup"),
		Clock:     cfg.Clock,

		StatusMissing: c.definition.Missing,

		Members:      cfg.Members,
		OpenLocation: cfg.OpenLocation,
	}
	c.makeBackup = func(obj *api.EtcdBackup) (fleet.Runner[*api.EtcdBackup], error) {
		return backup.New(shared, obj)
	}
	c.fleet = fleet.New(fleet.Config[*api.EtcdBackup]{
		Noun: "backup",
		New: func(obj *api.EtcdBackup) (fleet.Runner[*api.EtcdBackup], error) {
			return c.makeBackup(obj)
		},
		Recorder: cfg.Recorder, Log: c.log, Clock: cfg.Clock,
	})
	err = c.fleet.RegisterSize(cfg.Registry, prometheus.GaugeOpts{
		Namespace: "etcd_backup_operator", Name: "backups",
		Help: "EtcdBackups that the operator manages.",
	}, c.Ready)
	return c, err
}

// Ready returns nil while the controller sees all of its backups; the error says
// what it waits for.
func (c *Controller) Ready() error { return c.waiting.Ready() }

// Run manages backups until ctx ends, and returns when everything that it
// started has ended. It must be called once.
func (c *Controller) Run(ctx context.Context) error {
	defer c.waiting.For("nothing: it has ended")
	if c.initResource(ctx) != nil {
		return nil // ctx has ended
	}
	_, informer := c.source.Informer(ctx, c.fleet)
	var running sync.WaitGroup
	defer func() { // in this order: nobody starts a backup any more, then all end
		running.Wait()
		c.source.Wait()
		c.fleet.Wait()
	}()
	c.waiting.For("the cache of EtcdBackups: the role of the operator's service account must allow to list and watch them")
	running.Go(func() { c.definition.Keep(ctx) })
	running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitFor(ctx, "EtcdBackups", informer.HasSyncedChecker()) {
		return nil
	}
	c.waiting.Over()
	c.log.WithField("backups", c.fleet.Size()).Infof("managing the EtcdBackups in %s", fleet.Scope(c.cfg.ClusterWide, c.cfg.AnyScope, c.cfg.Namespace))
	<-ctx.Done()
	return nil
}

// initResource sees to it that the API server serves EtcdBackups. Its only error
// is that of ctx.
func (c *Controller) initResource(ctx context.Context) error {
	c.waiting.For(fmt.Sprintf("the CustomResourceDefinition %s", api.EtcdBackupCRDName))
	return c.definition.Init(ctx)
}
