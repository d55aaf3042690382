// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// remakeLostPods makes the pods of members again whose data is on a volume: each
// comes back as the member that it was. It needs no quorum, since it is how a
// quorum comes back after all pods were lost at once; all are made together.
func remakeLostPods(o *observation) step {
	if o.status.Phase != api.ClusterPhaseRunning && o.status.Phase != api.ClusterPhaseFailed {
		return nil // bootstrap makes the seed's
	}
	var pods []newPod
	for _, v := range o.volumes {
		p := o.pod(v.name)
		switch {
		case v.deleting || !o.mayHoldMember(v):
		case p == nil:
			pods = append(pods, newPod{
				name: v.name, version: o.rejoinVersion(v), initialCluster: o.initialCluster([]string{v.name}),
				volume: true, rejoins: true,
			})
		case p.finished && !p.deleting:
			return p.remove("it has ended, and is made again on its volume: " + p.trouble())
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return createPods{pods: pods, why: "their members' data is on volumes"}
}

// mayHoldMember tells whether a volume may hold a member's data. Without a quorum
// nobody can tell for sure: what a member remembers may be old. The pod of a
// member that was removed does no harm, for the others don't listen to it.
func (o *observation) mayHoldMember(v volumeState) bool {
	if !o.quorum {
		return true
	}
	i := slices.IndexFunc(o.members, func(m memberState) bool { return m.name == v.name })
	return i >= 0 && o.members[i].keepsData()
}

// rejoinVersion is the version to start on a volume's data: the one that ran on
// it last. The record on the volume may be late; the cluster's version on record
// is the lowest that any member runs.
func (o *observation) rejoinVersion(v volumeState) string {
	ran, err := etcd.ParseVersion(v.version)
	if err != nil {
		return cmp.Or(o.status.CurrentVersion, o.spec.EffectiveVersion())
	}
	if lowest, err := etcd.ParseVersion(o.status.CurrentVersion); err == nil && lowest.GT(ran.Version) {
		return lowest.String()
	}
	return ran.String()
}

// discardVolume deletes volumes that hold no member's data any more. That a member
// has left is known from a quorum alone.
func discardVolume(o *observation) step {
	for _, v := range o.volumes {
		if !v.deleting && !o.isMember(v.name) && o.pod(v.name) == nil {
			return deleteVolume{name: v.name, uid: v.uid}
		}
	}
	return nil
}

// expandVolumes asks for more storage where the spec does. A volume never gets
// smaller.
func expandVolumes(o *observation) step {
	if !o.spec.Persistent() {
		return nil
	}
	want, ok := o.spec.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return nil
	}
	for _, v := range o.volumes {
		if !v.deleting && o.isMember(v.name) && v.size.Cmp(want) < 0 && v.refusedSize == "" && !v.putOff {
			return expandVolume{name: v.name, uid: v.uid, from: v.size.String(), to: want.String()}
		}
	}
	return nil
}
