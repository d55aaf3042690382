// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// findUnlabelled looks for the pods of recorded members that the cache does not show.
// Otherwise they would count as lost with their data, and perhaps the quorum with them.
// Nothing else would find them.
func (c *Cluster) findUnlabelled(ctx context.Context, o *plan.Observation) error {
	if o.Ending || o.Record == nil {
		return nil
	}
	found := false
	for _, m := range o.Record.Members {
		what := "look for pod " + m.Name
		if m.Name == "" || o.Pod(m.Name) != nil || c.postponed.holds(what, o.Now) {
			continue
		}
		pod, err := c.unshownPod(ctx, m.Name)
		switch {
		case err != nil:
			return err
		case pod == nil:
			c.postponed.put(what, o.Now.Add(relabelPause))
		default:
			found = true
			if err := c.showPod(ctx, pod, o.Now); err != nil {
				return err
			}
		}
	}
	if found {
		return errCacheBehind
	}
	return nil
}

// findVanished looks for pods that have vanished from the cache without a deletion. One of
// them may belong to no member yet, or no longer. Without its labels, it would stay until its
// EtcdCluster goes, and keep its volume.
func (c *Cluster) findVanished(ctx context.Context, o *plan.Observation) error {
	shown := map[string]types.UID{}
	for _, p := range o.Pods {
		if !p.Deleting {
			shown[p.Name] = p.UID
		}
	}
	found := false
	for _, name := range slices.Sorted(maps.Keys(c.shown)) {
		if o.Pod(name) != nil || o.Ending {
			continue
		}
		pod, err := c.unshownPod(ctx, name)
		if err != nil {
			return err
		}
		if pod != nil && pod.UID == c.shown[name] {
			found = true
			if err := c.showPod(ctx, pod, o.Now); err != nil {
				return err
			}
		}
	}
	c.shown = shown
	if found {
		return errCacheBehind
	}
	return nil
}

// findStrays looks in the first pass for pods of this cluster whose labels do not name it. They
// lost the labels before this operator began, so findVanished does not know them. No record names
// those that belong to no member. The cache shows all pods that still have the label app=etcd.
func (c *Cluster) findStrays(ctx context.Context, lister corelisters.PodNamespaceLister, o *plan.Observation) error {
	if c.searched || o.Ending {
		return nil
	}
	pods, err := lister.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("pods of the namespace: %w", err)
	}
	own := labels.SelectorFromSet(o.Names.Labels())
	found := false
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || !metav1.IsControlledBy(pod, c.obj) || own.Matches(labels.Set(pod.Labels)) {
			continue
		}
		found = true
		if err := c.showPod(ctx, pod, o.Now); err != nil {
			return err
		}
	}
	c.searched = true
	if found {
		return errCacheBehind
	}
	return nil
}

// unshownPod asks the API server for a pod of this cluster that the cache does not show. It
// returns nil if there is none, or if it is being deleted.
func (c *Cluster) unshownPod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("pod %s, which the cache does not show: %w", name, err)
	case pod.DeletionTimestamp != nil || !metav1.IsControlledBy(pod, c.obj):
		return nil, nil
	}
	return pod, nil
}

// showPod remembers a pod that the cache does not show, and restores the labels by which the
// cache selects it.
func (c *Cluster) showPod(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	c.podWrites.record(pod, now)
	return c.relabel(ctx, pod)
}
