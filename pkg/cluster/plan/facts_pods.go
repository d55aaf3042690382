// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// starting reports whether no member of the cluster can have served yet.
func (o *Observation) starting() bool {
	return o.Status.Phase == api.ClusterPhaseNone || o.Status.Phase == api.ClusterPhaseCreating && len(o.Pods) == 0
}

// Pod returns the pod of a name; nil if there is none.
func (o *Observation) Pod(name string) *manifest.PodState {
	for i := range o.Pods {
		if o.Pods[i].Name == name {
			return &o.Pods[i]
		}
	}
	return nil
}

// Planned returns the pods of future members, in the order in which they can join.
func (o *Observation) Planned() []manifest.PodState {
	var planned []manifest.PodState
	for _, p := range o.Pods {
		if !o.IsMember(p.Name) && !p.Seed && !p.Started && !p.Deleting && !p.Finished {
			planned = append(planned, p)
		}
	}
	slices.SortStableFunc(planned, func(a, b manifest.PodState) int { return len(a.InitialCluster) - len(b.InitialCluster) })
	return planned
}

// plannedNames returns the names of the planned pods, in the same order.
func (o *Observation) plannedNames() []string {
	var names []string
	for _, p := range o.Planned() {
		names = append(names, p.Name)
	}
	return names
}

// ended reports whether the pod of a member to be has ended before etcd ran. A kubelet may refuse a pod
// that the scheduler has given to it, and end it at once.
func (o *Observation) ended(p manifest.PodState) bool {
	return p.Finished && !p.Started && !p.Seed && !p.Deleting && !p.DeletePutOff && !o.IsMember(p.Name)
}

// endedLately returns such a pod that stays for a moment; nil if there is none. Another one would
// probably end in the same way, and nobody could see why.
func (o *Observation) endedLately() *manifest.PodState {
	for _, p := range o.Pods {
		if o.ended(p) && o.Now.Sub(p.Created) < holdUpDeadline {
			return &p
		}
	}
	return nil
}

// mostLeftovers is how many pods and volumes without a member may be left while the operator creates
// more: as many as the largest cluster has members.
const mostLeftovers = 7

// littered reports whether the operator creates no more members, because Kubernetes refuses deletions.
// Where new members fail to join, each attempt would leave another pod and volume. A pod that must not
// join any more, and stays, counts as one that joins next: a later one could not know the membership.
func (o *Observation) littered() bool {
	left := 0
	for _, p := range o.Pods {
		if p.DeletePutOff && !p.Deleting && !o.IsMember(p.Name) {
			left++
		}
	}
	for _, v := range o.Volumes {
		if v.DeletePutOff && !v.Deleting && !o.IsMember(v.Name) {
			left++
		}
	}
	return left >= mostLeftovers || slices.ContainsFunc(o.Planned(), func(p manifest.PodState) bool { return p.DeletePutOff })
}

// Volume returns the volume of a name; nil if there is none.
func (o *Observation) Volume(name string) *manifest.VolumeState {
	for i := range o.Volumes {
		if o.Volumes[i].Name == name {
			return &o.Volumes[i]
		}
	}
	return nil
}
