// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// remakeLostPods recreates the pods of members whose data is on a volume: each returns as the
// same member. It needs no quorum, because it restores the quorum after the loss of all pods.
// It recreates all at once.
func remakeLostPods(o *Observation) Step {
	if o.Status.Phase != api.ClusterPhaseRunning && o.Status.Phase != api.ClusterPhaseFailed {
		return nil // bootstrap creates the seed's
	}
	var pods []manifest.MemberPod
	for _, v := range o.Volumes {
		p := o.Pod(v.Name)
		switch {
		case v.Deleting || !o.mayHoldMember(v) || p == nil && o.yields(v):
		case p == nil:
			pods = append(pods, manifest.MemberPod{
				Name: v.Name, Version: o.rejoinVersion(v), InitialCluster: o.initialCluster([]string{v.Name}),
				Volume: true, Rejoins: true, Owner: v.Owner,
			})
		case p.Finished && !p.Deleting && !p.DeletePutOff:
			return removePod(*p, "it has ended; the operator recreates it on its volume: "+p.Trouble())
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return CreatePods{Pods: pods, why: "their members' data is on volumes"}
}

// mayHoldMember reports whether a volume may hold a member's data. Without a quorum nobody
// knows for sure: a member's memory may be old. The pod of a removed member does no harm,
// because the others ignore it.
func (o *Observation) mayHoldMember(v manifest.VolumeState) bool {
	if !o.Quorum {
		return true
	}
	i := slices.IndexFunc(o.Members, func(m MemberState) bool { return m.PodName == v.Name })
	return i >= 0 && o.Members[i].KeepsData()
}

// unnoted returns the UID of a pod's volume that does not name this version; "": there is none.
// The volume names a version before etcd can start as it. etcd may change the data at once, and
// the pod may be lost before an operator looks. An earlier etcd does not open that data.
func (o *Observation) unnoted(pod, version string) types.UID {
	if v := o.Volume(pod); v != nil && !v.Deleting && v.Version != version {
		return v.UID
	}
	return ""
}

// rejoinVersion is the version to start on a volume's data: the last one that may have run on
// it. The volume of an earlier operator may name it late. The recorded cluster version is the
// lowest that any member runs.
func (o *Observation) rejoinVersion(v manifest.VolumeState) string {
	ran, err := etcd.ParseVersion(v.Version)
	if err != nil {
		if o.Status.CurrentVersion == "" {
			return o.Spec.EffectiveVersion()
		}
		return o.tagOf(o.Status.CurrentVersion)
	}
	lowest, err := etcd.ParseVersion(o.Status.CurrentVersion)
	if err == nil && lowest.GT(ran.Version) && !manifest.Holds(v.Version, lowest.String()) {
		return o.tagOf(lowest.String())
	}
	return ran.String()
}

// discardVolume deletes volumes without a member's data. Only a quorum knows that a member has
// left. One that Kubernetes refuses to delete does not hold back later rules: no new member gets its
// name.
func discardVolume(o *Observation) Step {
	for _, v := range o.Volumes {
		if !v.Deleting && !v.DeletePutOff && !o.IsMember(v.Name) && o.Pod(v.Name) == nil {
			return DeleteVolume{Name: v.Name, UID: v.UID}
		}
	}
	return nil
}

// Grows reports whether a volume follows the size in the spec. Without a quorum, nobody knows for
// sure which ones hold a member's data, and a larger one does no harm.
func (o *Observation) Grows(v manifest.VolumeState) bool {
	return !o.Quorum || o.IsMember(v.Name)
}

// Storage returns the size that the spec asks for each volume; false if it asks for none.
func (o *Observation) Storage() (resource.Quantity, bool) {
	if !o.Spec.Persistent() {
		return resource.Quantity{}, false
	}
	want, ok := o.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	return want, ok
}

// expandWithoutQuorum does so before anybody answers: volumes that are full may be what took the quorum.
// All members hold the same data, and fill theirs at about the same time. A seed's volume may be too small for
// its backup.
func expandWithoutQuorum(o *Observation) Step {
	if o.Quorum {
		return nil // other rules first
	}
	return expandVolumes(o)
}

// expandVolumes asks for the storage in the spec. A volume never shrinks.
func expandVolumes(o *Observation) Step {
	want, ok := o.Storage()
	if !ok {
		return nil
	}
	for _, v := range o.Volumes {
		if !v.Deleting && o.Grows(v) && v.Size.Cmp(want) < 0 && !v.SizePutOff && !v.PutOff {
			return ExpandVolume{Name: v.Name, UID: v.UID, From: v.Size.String(), To: want.String()}
		}
	}
	return nil
}
