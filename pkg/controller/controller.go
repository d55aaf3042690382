// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/controller/definition"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
	"github.com/etcd-operator/etcd-operator/pkg/fair"
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
	"github.com/etcd-operator/etcd-operator/pkg/importsource"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// etcdClusters is the resource that the controller watches.
var etcdClusters = api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural)

// Config is what a Controller works with.
type Config struct {
	// Namespace is the one that is watched, unless ClusterWide.
	Namespace   string
	ClusterWide bool
	// CreateCRD registers the CRD of EtcdClusters, or updates an older one. If
	// false, the controller waits until somebody else has.
	CreateCRD bool
	// Version of this operator.
	Version string
	// OperatorImage is the image of the init container of members.
	OperatorImage string
	// ReservedIDs is as in cluster.Config.
	ReservedIDs func(ctx context.Context, namespace string) (manifest.ReservedIDs, error)
	// GCInterval is the time between looks for orphans; 0 or less: never.
	GCInterval time.Duration
	// ChaosLevel says how many members to kill for a test; below 1: none.
	ChaosLevel int

	Kube         kubernetes.Interface
	EtcdClusters versioned.Interface
	Dynamic      dynamic.Interface
	CRDs         apiextensions.Interface
	Recorder     record.EventRecorder
	Registry     prometheus.Registerer
	Logger       *logrus.Entry
	Clock        clock.WithTicker
	Rand         *rand.Rand
	// Members returns the way to the members of a cluster; nil: the network.
	Members func() cluster.Members
	// Survey looks at an etcd to import; nil: through the network.
	Survey func(context.Context, *importsource.Source) importsource.Facts
}

// Controller manages the EtcdClusters in its scope.
type Controller struct {
	cfg            Config
	log            *logrus.Entry
	fleet          *fleet.Fleet[*api.EtcdCluster]
	source         *fleet.Source[*api.EtcdCluster]
	definition     *definition.Keeper
	clusterMetrics *cluster.Metrics
	// makeCluster is cluster.New, but in tests.
	makeCluster func(ownedObjects, *api.EtcdCluster) (fleet.Runner[*api.EtcdCluster], error)
	passes      *fair.Limiter
	// watched are the caches of what belongs to clusters, from Run on.
	watched ownedObjects
	waiting fleet.Waiting
}

// bound says why an EtcdCluster that can't be read must stay.
func bound(u *unstructured.Unstructured) string {
	if !slices.Contains(u.GetFinalizers(), api.ImportFinalizer) {
		return ""
	}
	return "its import has begun, so the members are on the list of the etcd that it imports, or that etcd refuses writes"
}

// New returns a Controller and registers its metrics; nothing else happens before
// Run.
func New(cfg Config) (*Controller, error) {
	if cfg.Namespace == "" && !cfg.ClusterWide {
		return nil, errors.New("the controller needs the namespace to watch, or must be cluster-wide")
	}
	if cfg.ChaosLevel > MaxChaosLevel {
		return nil, fmt.Errorf("there is no chaos level %d: the highest is %d", cfg.ChaosLevel, MaxChaosLevel)
	}
	if cfg.ClusterWide {
		cfg.Namespace = metav1.NamespaceAll
	}
	c := &Controller{cfg: cfg, log: cfg.Logger.WithField("pkg", "controller")}
	c.makeCluster = c.newCluster
	c.waiting.For("the controller to start")

	var err error
	if c.clusterMetrics, err = cluster.NewMetrics(cfg.Registry); err != nil {
		return nil, err
	}
	want, err := crd.EtcdCluster()
	if err != nil {
		return nil, err
	}
	c.definition = definition.New(definition.Config{
		CRDs: cfg.CRDs, Want: want, Create: cfg.CreateCRD, Version: cfg.Version, Clock: cfg.Clock, Log: c.log, Waiting: &c.waiting,
	})
	c.source = &fleet.Source[*api.EtcdCluster]{
		Dynamic:     cfg.Dynamic,
		Resource:    etcdClusters,
		Kind:        api.EtcdClusterResourceKind,
		New:         func() *api.EtcdCluster { return &api.EtcdCluster{} },
		ReasonField: "reason",
		Finalizer:   api.ImportFinalizer,
		Bound:       bound,
		SomeHeld:    true,
		Namespace:   cfg.Namespace,
		ClusterWide: cfg.ClusterWide,
		Missing:     c.definition.Missing,
		Recorder:    cfg.Recorder,
		Log:         c.log,
		Clock:       cfg.Clock,
	}
	m, err := newMetrics(cfg.Registry)
	if err != nil {
		return nil, err
	}
	c.fleet = fleet.New(fleet.Config[*api.EtcdCluster]{
		Noun: "cluster",
		New: func(obj *api.EtcdCluster) (fleet.Runner[*api.EtcdCluster], error) {
			return c.makeCluster(c.watched, obj)
		},
		Recorder: cfg.Recorder, Log: c.log, Clock: cfg.Clock, Counted: m.counted(),
	})
	c.passes = cluster.PassLimit(cfg.Clock, c.fleet.Size)
	err = c.fleet.RegisterSize(cfg.Registry, prometheus.GaugeOpts{
		Namespace: "etcd_operator", Subsystem: "controller", Name: "clusters",
		Help: "Clusters that the operator manages.",
	}, c.Ready)
	return c, err
}

// Ready returns nil while the controller sees all of its clusters; the error says
// what it waits for.
func (c *Controller) Ready() error { return c.waiting.Ready() }

// Run manages clusters until ctx ends, and returns when everything that it
// started has ended. It must be called once.
func (c *Controller) Run(ctx context.Context) error {
	defer c.waiting.For("nothing: it has ended")
	if err := c.initResource(ctx); err != nil {
		return c.unlessDone(ctx, err)
	}

	factory := informers.NewSharedInformerFactoryWithOptions(c.cfg.Kube, 0,
		informers.WithNamespace(c.cfg.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = api.AppLabel + "=" + api.AppEtcd }),
		informers.WithTransform(dropManagedFields))
	pods, services, volumes, budgets := factory.Core().V1().Pods(), factory.Core().V1().Services(), factory.Core().V1().PersistentVolumeClaims(), factory.Policy().V1().PodDisruptionBudgets()
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), services.Informer(), volumes.Informer()} {
		if err := informer.AddIndexers(cluster.Indexers); err != nil {
			return fmt.Errorf("index what belongs to clusters: %w", err)
		}
	}
	c.watched = ownedObjects{
		cluster.PodLister(pods.Informer().GetIndexer()), cluster.ServiceLister(services.Informer().GetIndexer()),
		cluster.VolumeLister(volumes.Informer().GetIndexer()), budgets.Lister(),
	}
	var synced []cache.DoneChecker
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), services.Informer(), volumes.Informer(), budgets.Informer()} {
		if _, err := informer.AddEventHandler(wakeOwner(c.fleet)); err != nil {
			return fmt.Errorf("watch what belongs to clusters: %w", err)
		}
		synced = append(synced, informer.HasSyncedChecker())
	}
	clusters, informer := c.clusterInformer(ctx)

	var running sync.WaitGroup
	defer func() { // in this order: nobody starts a cluster any more, then all end
		running.Wait()
		c.source.Wait()
		factory.Shutdown()
		c.fleet.Wait()
	}()

	// A cluster must not be looked at before its pods are known.
	c.waiting.For("the caches of pods, Services, PersistentVolumeClaims and PodDisruptionBudgets: the role of the operator's service account must allow to list and watch them")
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "pods, Services, PersistentVolumeClaims and PodDisruptionBudgets", synced...) {
		return nil
	}
	c.waiting.For("the cache of EtcdClusters: the role of the operator's service account must allow to list and watch them")
	running.Go(func() { c.definition.Keep(ctx) })
	running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitFor(ctx, "EtcdClusters", informer.HasSyncedChecker()) {
		return nil
	}
	c.waiting.Over()
	c.log.WithField("clusters", c.fleet.Size()).Infof("managing the EtcdClusters in %s", fleet.Scope(c.cfg.ClusterWide, false, c.cfg.Namespace))

	orphans := &collector{
		kube: c.cfg.Kube, clusters: c.cfg.Dynamic, known: clusters,
		ownedObjects: c.watched, log: c.log,
	}
	running.Go(func() { orphans.run(ctx, c.cfg.Clock, c.cfg.GCInterval) })
	chaos := &monkey{kube: c.cfg.Kube, pods: c.watched.pods, fleet: c.fleet, rand: c.cfg.Rand, log: c.log}
	running.Go(func() { chaos.run(ctx, c.cfg.Clock, c.cfg.ChaosLevel) })
	<-ctx.Done()
	return nil
}

// initResource sees to it that the API server serves EtcdClusters.
func (c *Controller) initResource(ctx context.Context) error {
	c.waiting.For(fmt.Sprintf("the CustomResourceDefinition %s", api.EtcdClusterCRDName))
	return c.definition.Init(ctx)
}

// clusterInformer returns the informer of EtcdClusters, which hands each of them
// to cluster.New by way of the fleet, and its store.
func (c *Controller) clusterInformer(ctx context.Context) (cache.Indexer, cache.Controller) {
	return c.source.Informer(ctx, c.fleet)
}

// ownedObjects are the caches of the objects that belong to clusters.
type ownedObjects struct {
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	volumes  corelisters.PersistentVolumeClaimLister
	budgets  policylisters.PodDisruptionBudgetLister
}

func (c *Controller) newCluster(b ownedObjects, obj *api.EtcdCluster) (fleet.Runner[*api.EtcdCluster], error) {
	return cluster.New(cluster.Config{
		Kube:          c.cfg.Kube,
		EtcdClusters:  c.cfg.EtcdClusters,
		Pods:          b.pods,
		Services:      b.services,
		Volumes:       b.volumes,
		Budgets:       b.budgets,
		Recorder:      c.cfg.Recorder,
		Logger:        c.cfg.Logger.WithField("pkg", "cluster"),
		Metrics:       c.clusterMetrics,
		OperatorImage: c.cfg.OperatorImage,
		ReservedIDs:   c.cfg.ReservedIDs,
		Clock:         c.cfg.Clock,
		StatusMissing: c.definition.Missing,
		Members:       c.cfg.Members,
		Survey:        c.cfg.Survey,
		Period:        cluster.Period,
		Passes:        c.passes,
	}, obj)
}

// unlessDone drops an error that is nothing but the end of ctx.
func (c *Controller) unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// dropManagedFields keeps out of the caches what makes up half of a pod and is
// never looked at.
func dropManagedFields(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}
