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

// sightings are when the operator, by its own clock, first saw pods, their deletions, and that
// they are ready. Durations need one clock: if the API server's clock differs by minutes, new pods
// would look old at once.
type sightings struct {
	pods, deletions, ready map[types.UID]time.Time
	// startups are the etcd containers whose startup probe the operator has seen unfinished.
	startups map[types.UID]string
	serving  map[types.UID]serving
}

// serving is an etcd that the operator has seen ready.
type serving struct {
	restarts int32 // of its container before
	since    time.Time
}

func newSightings() sightings {
	return sightings{
		pods: map[types.UID]time.Time{}, deletions: map[types.UID]time.Time{}, ready: map[types.UID]time.Time{},
		startups: map[types.UID]string{}, serving: map[types.UID]serving{},
	}
}

// see sets the times of a pod's state.
func (s sightings) see(p *manifest.PodState, pod *corev1.Pod, now time.Time) {
	p.Created = firstSeen(s.pods, p.UID, now)
	if p.Deleting {
		grace := ptr.Deref(pod.DeletionGracePeriodSeconds, int64(manifest.PodGrace(pod)/time.Second))
		p.DeleteBy = firstSeen(s.deletions, p.UID, now).Add(time.Duration(grace)*time.Second + manifest.DeleteMargin)
	}
}

// seeReady sets since when a pod is ready without a break.
func (s sightings) seeReady(p *manifest.PodState, now time.Time) {
	if !p.Ready {
		delete(s.ready, p.UID)
		return
	}
	p.ReadySince = firstSeen(s.ready, p.UID, now)
}

// seeStartup sets whether the startup probe of a pod's present etcd container has succeeded.
//
// After a restart in place, the kubelet (1.36) takes over what the probe found of the former
// container, and reports the pod as ready. Up to a second later it forgets that, and reports the pod
// as not ready until the probe has succeeded. Only a success after that concerns the new container.
func (s sightings) seeStartup(p *manifest.PodState) {
	if p.StartingUp {
		s.startups[p.UID] = p.Container
	}
	p.StartedUp = !p.StartingUp && p.Container != "" && s.startups[p.UID] == p.Container
}

// seeServing notes since when the present etcd of a pod has served.
func (s sightings) seeServing(p manifest.PodState, now time.Time) {
	switch seen, ok := s.serving[p.UID]; {
	case !p.Ready:
		delete(s.serving, p.UID)
	case !ok || seen.restarts != p.Restarts:
		s.serving[p.UID] = serving{p.Restarts, now}
	}
}

// servedBefore reports whether the operator has seen the present etcd of a pod serve before a point in time.
func (s sightings) servedBefore(p manifest.PodState, at time.Time) bool {
	seen, ok := s.serving[p.UID]
	return ok && seen.restarts == p.Restarts && seen.since.Before(at)
}

func firstSeen(seen map[types.UID]time.Time, uid types.UID, now time.Time) time.Time {
	if _, ok := seen[uid]; !ok {
		seen[uid] = now
	}
	return seen[uid]
}

// forget drops absent pods.
func (s sightings) forget(gone func(types.UID) bool) {
	for _, seen := range []map[types.UID]time.Time{s.pods, s.deletions, s.ready} {
		maps.DeleteFunc(seen, func(uid types.UID, _ time.Time) bool { return gone(uid) })
	}
	maps.DeleteFunc(s.startups, func(uid types.UID, _ string) bool { return gone(uid) })
	maps.DeleteFunc(s.serving, func(uid types.UID, _ serving) bool { return gone(uid) })
}
