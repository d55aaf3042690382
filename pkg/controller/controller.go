// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
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
	"github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned"
)

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
}

// Controller takes care of the EtcdClusters in its scope.
type Controller struct {
	cfg            Config
	log            *logrus.Entry
	fleet          *fleet
	clusterMetrics *cluster.Metrics
	// makeCluster is cluster.New, but in tests.
	makeCluster func(belongings, *api.EtcdCluster) (Cluster, error)
	waitsFor    atomic.Pointer[string] // nil when ready
	// missing holds a token when the API server was seen not to know the
	// resource, after it was registered.
	missing chan struct{}
	writes  sync.WaitGroup // of status.reason of objects that can't be read
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
	c := &Controller{cfg: cfg, log: cfg.Logger.WithField("pkg", "controller"), missing: make(chan struct{}, 1)}
	c.makeCluster = c.newCluster
	c.wait("the controller to start")

	var err error
	if c.clusterMetrics, err = cluster.NewMetrics(cfg.Registry); err != nil {
		return nil, err
	}
	c.fleet = newFleet(c.log, cfg.Clock)
	c.fleet.recorder = cfg.Recorder
	if c.fleet.metrics, err = newMetrics(cfg.Registry, c.fleet.size); err != nil {
		return nil, err
	}
	return c, nil
}

// Ready returns nil while the controller sees all of its clusters; the error says
// what it waits for.
func (c *Controller) Ready() error {
	if what := c.waitsFor.Load(); what != nil {
		return fmt.Errorf("waiting for %s", *what)
	}
	return nil
}

func (c *Controller) wait(what string) { c.waitsFor.Store(&what) }

// Run takes care of clusters until ctx ends, and returns when everything that it
// started has ended. It must be called once.
func (c *Controller) Run(ctx context.Context) error {
	defer c.wait("nothing: it has ended")
	if err := c.initResource(ctx); err != nil {
		return c.unlessDone(ctx, err)
	}

	factory := informers.NewSharedInformerFactoryWithOptions(c.cfg.Kube, 0,
		informers.WithNamespace(c.cfg.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = appLabel + "=" + appEtcd }),
		informers.WithTransform(dropManagedFields))
	pods, services, volumes, budgets := factory.Core().V1().Pods(), factory.Core().V1().Services(), factory.Core().V1().PersistentVolumeClaims(), factory.Policy().V1().PodDisruptionBudgets()
	watched := belongings{pods.Lister(), services.Lister(), volumes.Lister(), budgets.Lister()}
	var synced []cache.DoneChecker
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), services.Informer(), volumes.Informer(), budgets.Informer()} {
		if _, err := informer.AddEventHandler(wakeOwner(c.fleet)); err != nil {
			return fmt.Errorf("watch what belongs to clusters: %w", err)
		}
		synced = append(synced, informer.HasSyncedChecker())
	}
	c.fleet.newCluster = func(obj *api.EtcdCluster) (Cluster, error) { return c.makeCluster(watched, obj) }
	clusters, informer := c.clusterInformer(ctx)

	var running sync.WaitGroup
	defer func() { // in this order: nobody starts a cluster any more, then all end
		running.Wait()
		c.writes.Wait()
		factory.Shutdown()
		c.fleet.wait()
	}()

	// A cluster must not be looked at before its pods are known.
	c.wait("the caches of pods, Services, PersistentVolumeClaims and PodDisruptionBudgets: the role of the operator's service account must allow to list and watch them")
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "pods, Services, PersistentVolumeClaims and PodDisruptionBudgets", synced...) {
		return nil
	}
	c.wait("the cache of EtcdClusters: the role of the operator's service account must allow to list and watch them")
	running.Go(func() { c.keepResource(ctx) })
	running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitFor(ctx, "EtcdClusters", informer.HasSyncedChecker()) {
		return nil
	}
	c.waitsFor.Store(nil)
	c.log.WithField("clusters", c.fleet.size()).Infof("taking care of the EtcdClusters in %s", c.scope())

	orphans := &collector{
		kube: c.cfg.Kube, clusters: c.cfg.Dynamic, known: clusters,
		belongings: watched, log: c.log,
	}
	running.Go(func() { orphans.run(ctx, c.cfg.Clock, c.cfg.GCInterval) })
	chaos := &monkey{kube: c.cfg.Kube, pods: watched.pods, fleet: c.fleet, rand: c.cfg.Rand, log: c.log}
	running.Go(func() { chaos.run(ctx, c.cfg.Clock, c.cfg.ChaosLevel) })
	<-ctx.Done()
	return nil
}

func (c *Controller) scope() string {
	if c.cfg.ClusterWide {
		return fmt.Sprintf("all namespaces that are annotated %s=%s", ScopeAnnotation, ScopeClusterWide)
	}
	return "namespace " + c.cfg.Namespace
}

// initResource sees to it that the API server serves EtcdClusters.
func (c *Controller) initResource(ctx context.Context) error {
	c.wait(fmt.Sprintf("the CustomResourceDefinition %s", api.EtcdClusterCRDName))
	if !c.cfg.CreateCRD {
		return awaitServed(ctx, discovery.ToDiscoveryInterfaceWithContext(c.cfg.CRDs.Discovery()), c.cfg.Clock, c.log)
	}
	want, err := crd.EtcdCluster()
	if err != nil {
		return err
	}
	r := &resource{crds: c.cfg.CRDs, want: want, version: c.cfg.Version, clock: c.cfg.Clock, log: c.log}
	return r.ensure(ctx)
}

// resourceMissing notes that the API server does not know EtcdClusters.
func (c *Controller) resourceMissing() {
	select {
	case c.missing <- struct{}{}:
	default:
	}
}

// keepResource registers the CRD again when somebody deletes it while the operator
// runs. The EtcdClusters went with it and don't come back; but new ones can be
// made.
func (c *Controller) keepResource(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.missing:
		}
		c.log.Warnf("the API server no longer knows the CustomResourceDefinition %s", api.EtcdClusterCRDName)
		if !c.cfg.CreateCRD {
			continue // the informer tries again until somebody else has registered it
		}
		want, err := crd.EtcdCluster()
		if err != nil {
			c.log.WithError(err).Error("the operator's own CustomResourceDefinition")
			return
		}
		r := &resource{crds: c.cfg.CRDs, want: want, version: c.cfg.Version, clock: c.cfg.Clock, log: c.log}
		if err := r.ensure(ctx); err != nil {
			return // ctx has ended
		}
	}
}

// clusterInformer returns the informer of EtcdClusters and its store. It is
// client-go's plain indexer informer, which calls its one handler itself: a shared
// informer would put a queue in between. (cache.NewIndexerInformer, as it was
// called, is deprecated in favour of this function.)
func (c *Controller) clusterInformer(ctx context.Context) (cache.Indexer, cache.Controller) {
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listWatch(c.cfg.Dynamic, c.cfg.Namespace, c.resourceMissing),
		ObjectType:    watched(),
		Handler: &clusterHandler{
			ctx: ctx, fleet: c.fleet, clusterWide: c.cfg.ClusterWide, recorder: c.cfg.Recorder, log: c.log,
			writeReason: func(obj *unreadable, reason string) {
				c.writes.Go(func() { c.writeReason(ctx, obj, reason) })
			},
		},
		Indexers:  cache.Indexers{uidIndex: indexByUID},
		Transform: decode,
	})
	return store.(cache.Indexer), informer // as it is where there are Indexers
}

// belongings are the caches of what belongs to clusters.
type belongings struct {
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	volumes  corelisters.PersistentVolumeClaimLister
	budgets  policylisters.PodDisruptionBudgetLister
}

func (c *Controller) newCluster(b belongings, obj *api.EtcdCluster) (Cluster, error) {
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
		Clock:         c.cfg.Clock,
		Period:        cluster.Period,
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
