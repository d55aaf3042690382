// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// sightings are when pods were first seen, and first seen to be deleted, by the operator's
// clock. How long something has lasted is told by one clock: with a difference of minutes
// between the API server's and the operator's, new pods would count as old at once.
type sightings struct {
	pods, deletions map[types.UID]time.Time
}

func newSightings() sightings {
	return sightings{pods: map[types.UID]time.Time{}, deletions: map[types.UID]time.Time{}}
}

// see sets the times of a pod's state.
func (s sightings) see(p *manifest.PodState, pod *corev1.Pod, now time.Time) {
	p.Created = firstSeen(s.pods, p.UID, now)
	if p.Deleting {
		grace := ptr.Deref(pod.DeletionGracePeriodSeconds, int64(manifest.PodGrace(pod)/time.Second))
		p.DeleteBy = firstSeen(s.deletions, p.UID, now).Add(time.Duration(grace)*time.Second + manifest.DeleteMargin)
	}
}

func firstSeen(seen map[types.UID]time.Time, uid types.UID, now time.Time) time.Time {
	if _, ok := seen[uid]; !ok {
		seen[uid] = now
	}
	return seen[uid]
}

// forget drops the pods that are gone.
func (s sightings) forget(gone func(types.UID) bool) {
	for _, seen := range []map[types.UID]time.Time{s.pods, s.deletions} {
		maps.DeleteFunc(seen, func(uid types.UID, _ time.Time) bool { return gone(uid) })
	}
}
