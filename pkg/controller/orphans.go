// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet"
)

// collector deletes pods, Services and PodDisruptionBudgets whose EtcdCluster is
// gone. Kubernetes does so itself, but not where an owner was removed without its
// dependents; such pods would continue to serve, and are in the way of a cluster of
// the same name. Volumes it leaves alone: they are in nobody's way, and hold
// data that somebody may have meant to keep.
type collector struct {
	kube     kubernetes.Interface
	clusters dynamic.Interface
	known    cache.Indexer // of EtcdClusters
	ownedObjects
	log *logrus.Entry
}

// orphan is one object whose owner the informer does not know.
type orphan struct {
	kind   string // pod, Service or PodDisruptionBudget
	object metav1.Object
	owner  *metav1.OwnerReference
	delete func(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// run collects once in each interval; an interval of 0 or less means never.
func (c *collector) run(ctx context.Context, clock clock.WithTicker, interval time.Duration) {
	if interval <= 0 {
		return
	}
	ticker := clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.collect(ctx)
		}
	}
}

// collect makes one pass. What to look at comes from the caches, so that a
// cluster without orphans costs the API server nothing; what to delete is decided
// by asking it, as a cache may be behind.
func (c *collector) collect(ctx context.Context) {
	orphans, err := c.suspects()
	if err != nil {
		c.log.WithError(err).Error("look for orphans in the caches")
		return
	}
	for _, o := range orphans {
		if err := c.check(ctx, o); err != nil && ctx.Err() == nil {
			c.log.WithError(err).Warnf("orphan %s %s/%s", o.kind, o.object.GetNamespace(), o.object.GetName())
		}
	}
}

// suspects are the objects whose owner is not among the known EtcdClusters.
func (c *collector) suspects() ([]orphan, error) {
	var orphans []orphan
	consider := func(o orphan) error {
		if o.owner = ownerOf(o.object); o.owner == nil {
			return nil
		}
		known, err := c.known.ByIndex(fleet.UIDIndex, string(o.owner.UID))
		if err == nil && len(known) == 0 && o.object.GetDeletionTimestamp() == nil {
			orphans = append(orphans, o)
		}
		return err
	}
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		if err := consider(orphan{kind: "pod", object: p, delete: c.kube.CoreV1().Pods(p.Namespace).Delete}); err != nil {
			return nil, err
		}
	}
	services, err := c.services.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, s := range services {
		if err := consider(orphan{kind: "Service", object: s, delete: c.kube.CoreV1().Services(s.Namespace).Delete}); err != nil {
			return nil, err
		}
	}
	budgets, err := c.budgets.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, b := range budgets {
		if err := consider(orphan{kind: "PodDisruptionBudget", object: b, delete: c.kube.PolicyV1().PodDisruptionBudgets(b.Namespace).Delete}); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(orphans, func(a, b orphan) int {
		return strings.Compare(fleet.KeyOf(a.object).String(), fleet.KeyOf(b.object).String())
	})
	return orphans, nil
}

// check deletes an object if its owner does not exist.
func (c *collector) check(ctx context.Context, o orphan) error {
	namespace, name := o.object.GetNamespace(), o.object.GetName()
	exists, err := c.ownerExists(ctx, namespace, o.owner)
	if err != nil || exists {
		return err
	}
	uid := o.object.GetUID()
	err = o.delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // gone, or another one of that name
		return nil
	case err != nil:
		return fmt.Errorf("delete it, because its EtcdCluster %s (UID %s) does not exist: %w", o.owner.Name, o.owner.UID, err)
	}
	c.log.Infof("deleted orphan %s %s/%s: its EtcdCluster %s (UID %s) does not exist", o.kind, namespace, name, o.owner.Name, o.owner.UID)
	return nil
}

func (c *collector) ownerExists(ctx context.Context, namespace string, owner *metav1.OwnerReference) (bool, error) {
	live, err := c.clusters.Resource(etcdClusters).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// Also a 404, but about the resource: the CRD is being registered again,
		// or another API server knows it already. It says nothing of the object.
		return false, fmt.Errorf("read its EtcdCluster %s: %w", owner.Name, err)
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read its EtcdCluster %s: %w", types.NamespacedName{Namespace: namespace, Name: owner.Name}, err)
	default:
		return live.GetUID() == owner.UID, nil
	}
}
