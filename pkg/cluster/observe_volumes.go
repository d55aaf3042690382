// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// observeVolumes looks at the PersistentVolumeClaims of the cluster.
func (c *Cluster) observeVolumes(o *plan.Observation) error {
	claims, err := c.cfg.Volumes.PersistentVolumeClaims(c.obj.Namespace).List(labels.SelectorFromSet(o.Names.Labels()))
	if err != nil {
		return fmt.Errorf("volumes of the cluster: %w", err)
	}
	for _, claim := range claims {
		if !metav1.IsControlledBy(claim, c.obj) {
			continue
		}
		v := manifest.VolumeStateOf(claim)
		if c.deletedVolumes[v.UID] {
			v.Deleting = true
		}
		v.PutOff = c.postponed.holds(changeOf(v.Name), o.Now)
		v.RefusedSize = c.refusals.of(sizeOf(c.obj, v.Name), o.Now)
		o.Volumes = append(o.Volumes, v)
	}
	slices.SortFunc(o.Volumes, func(a, b manifest.VolumeState) int { return cmp.Compare(a.Name, b.Name) })
	maps.DeleteFunc(c.deletedVolumes, func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(o.Volumes, func(v manifest.VolumeState) bool { return v.UID == uid })
	})
	return nil
}
