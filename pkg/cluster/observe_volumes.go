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
	for _, claim := range slices.Concat(claims, unseen) {
		if !metav1.IsControlledBy(claim, c.obj) {
			continue
		}
		v := manifest.VolumeStateOf(claim)
		if c.deletedVolumes[v.UID] {
			v.Deleting = true
		}
		v.PutOff = c.postponed.holds(changeOf(v.Name), o.Now)
		v.RefusedSize = c.postponed.refusal(sizeOf(c.obj, v.Name), o.Now)
		o.Volumes = append(o.Volumes, v)
	}
	slices.SortFunc(o.Volumes, func(a, b manifest.VolumeState) int { return cmp.Compare(a.Name, b.Name) })
	maps.DeleteFunc(c.deletedVolumes, func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(o.Volumes, func(v manifest.VolumeState) bool { return v.UID == uid })
	})
	return nil
}

// unseenVolumes asks the API server for the claims of pods that the cache does not show. The
// caches of two kinds lag differently: a pod may appear before its claim. Without its claim,
// the pod's data would seem to contradict the spec.
func (c *Cluster) unseenVolumes(ctx context.Context, o *plan.Observation, cached []*corev1.PersistentVolumeClaim) ([]*corev1.PersistentVolumeClaim, error) {
	var unseen []*corev1.PersistentVolumeClaim
	for _, p := range o.Pods {
		if !p.Claimed || p.Deleting || slices.ContainsFunc(cached, func(claim *corev1.PersistentVolumeClaim) bool { return claim.Name == p.Name }) {
			continue
		}
		claim, err := c.storedVolume(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			unseen = append(unseen, claim)
		}
	}
	return unseen, nil
}
