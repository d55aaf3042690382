// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && (pod.DeletionTimestamp != nil || !metav1.IsControlledBy(pod, c.obj)):
			c.postponed.put(what, o.Now.Add(relabelPause))
		case err != nil:
			return fmt.Errorf("pod %s of a member on record: %w", m.Name, err)
		default:
			found = true
			c.podWrites.record(pod, o.Now)
			if err := c.relabel(ctx, pod); err != nil {
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
	for name, uid := range c.shown {
		if o.Pod(name) != nil || o.Ending {
			continue
		}
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && pod.UID != uid:
		case err != nil:
			return fmt.Errorf("pod %s, which the cache has shown before: %w", name, err)
		case pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, c.obj):
			found = true
			c.podWrites.record(pod, o.Now)
			if err := c.relabel(ctx, pod); err != nil {
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
