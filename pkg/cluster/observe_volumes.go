// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// observeVolumes reads the PersistentVolumeClaims of the cluster.
func (c *Cluster) observeVolumes(ctx context.Context, o *plan.Observation) error {
	claims, err := c.cfg.Volumes.PersistentVolumeClaims(c.obj.Namespace).List(labels.SelectorFromSet(o.Names.Labels()))
	if err != nil {
		return fmt.Errorf("volumes of the cluster: %w", err)
	}
	unseen, err := c.unseenVolumes(ctx, o, claims)
	if err != nil {
		return err
	}
	claims = slices.Concat(claims, unseen)
	slices.SortFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	for _, claim := range claims {
		if !metav1.IsControlledBy(claim, c.obj) {
			continue
		}
		v := manifest.VolumeStateOf(claim)
		if c.deletedVolumes[v.UID] {
			v.Deleting = true
		}
		v.PutOff = c.postponed.holds(changeOf(v.Name), o.Now)
		o.WriteUndone = cmp.Or(o.WriteUndone, c.postponed.lastRefusal(changeOf(v.Name), o.Now))
		v.RefusedSize = c.postponed.lastRefusal(sizeOf(c.obj, v.Name), o.Now)
		v.DeletePutOff = c.postponed.holds(deletionOfVolume(v.Name), o.Now)
		o.WriteUndone = cmp.Or(o.WriteUndone, c.refusedTo(deletionOfVolume(v.Name), o.Now))
		v.SizePutOff = c.postponed.holds(sizeOf(c.obj, v.Name), o.Now)
		o.Volumes = append(o.Volumes, v)
	}
	maps.DeleteFunc(c.deletedVolumes, func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(o.Volumes, func(v manifest.VolumeState) bool { return v.UID == uid })
	})
	return nil
}

// unseenVolumes asks the API server for claims that the cache does not show: those of pods, and those
// of recorded members without a pod. The caches of two kinds lag differently: a pod may appear before
// its claim. Without its claim, the pod's data would seem to contradict the spec. A claim that has
// lost its labels never appears, and its member would count as lost with its data.
func (c *Cluster) unseenVolumes(ctx context.Context, o *plan.Observation, cached []*corev1.PersistentVolumeClaim) ([]*corev1.PersistentVolumeClaim, error) {
	var unseen []*corev1.PersistentVolumeClaim
	look := func(name string) (found bool, err error) {
		if slices.ContainsFunc(slices.Concat(cached, unseen), func(claim *corev1.PersistentVolumeClaim) bool { return claim.Name == name }) {
			return true, nil
		}
		claim, err := c.storedVolume(ctx, name)
		if claim == nil || err != nil {
			return false, err
		}
		unseen = append(unseen, claim)
		if o.Ending || claim.DeletionTimestamp != nil {
			return metav1.IsControlledBy(claim, c.obj), nil
		}
		return metav1.IsControlledBy(claim, c.obj), c.relabelVolume(ctx, claim)
	}
	for _, p := range o.Pods {
		if !p.Claimed || p.Deleting {
			continue
		}
		if _, err := look(p.Name); err != nil {
			return nil, err
		}
	}
	if o.Ending || o.Record == nil {
		return unseen, nil
	}
	for _, m := range o.Record.Members {
		what := "look for PersistentVolumeClaim " + m.Name
		if p := o.Pod(m.Name); m.Name == "" || p != nil && !p.Deleting || c.postponed.holds(what, o.Now) {
			continue
		}
		found, err := look(m.Name)
		if err != nil {
			return nil, err
		}
		if !found {
			c.postponed.put(what, o.Now.Add(relabelPause))
		}
	}
	return unseen, nil
}
