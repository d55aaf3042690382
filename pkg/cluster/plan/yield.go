// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// yieldNode deletes the pod of a member to be, if a member's pod finds no node because of others. A
// bootstrap counts the seed as a member. The rule needs no quorum: the member may be what the quorum
// lacks. Without one, nobody knows whether the one to be has joined meanwhile. So the pod must be without
// data: etcd has not run in it, or finds none. No member votes before the note that it has data, so such
// a pod takes no part in a quorum, and its volume stays.
func yieldNode(o *Observation) Step {
	m := o.crowdedOut()
	if m == nil || o.Now.Sub(m.Created) < roomPatience {
		return nil
	}
	for _, p := range o.Pods {
		if o.known(p.Name) || p.Deleting || p.DeletePutOff || p.Finished || !p.Scheduled || p.Noted {
			continue
		}
		if !p.Started || p.Unproven || p.Dataless {
			return DeletePod{
				Name: p.Name, UID: p.UID, Creating: o.Status.Phase == api.ClusterPhaseCreating,
				Why: fmt.Sprintf("the pod of member %s finds no node, and this one holds no member's data", m.Name),
			}
		}
	}
	return nil
}

// crowdedOut returns the pod of a member that finds no node because of other pods; nil if there is none.
func (o *Observation) crowdedOut() *manifest.PodState {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Crowded > 0 && !p.Deleting && !p.Finished && o.known(p.Name) {
			return p
		}
	}
	return nil
}

// known reports whether a pod belongs to a member: etcd says so, or without a quorum the record. During
// the bootstrap, that is the seed alone: the others are of use after it serves.
func (o *Observation) known(pod string) bool {
	if o.Status.Phase == api.ClusterPhaseCreating && len(o.Status.Members.Unready) > 0 {
		return pod == o.Status.Members.Unready[0]
	}
	return o.IsMember(pod) || !o.Quorum && o.Recorded(pod)
}

// awaitsNode reports whether the pod of a member has no node yet.
func (o *Observation) awaitsNode() bool {
	return slices.ContainsFunc(o.Pods, func(p manifest.PodState) bool {
		return !p.Scheduled && !p.Deleting && !p.Finished && o.known(p.Name)
	})
}

// yields reports whether the pod on a volume must wait until members' pods have found nodes. Nothing
// says that etcd has ever run on that volume. A pod that no longer blocks a member's may do so again
// when it returns, so whatever keeps the member from a node counts.
func (o *Observation) yields(v manifest.VolumeState) bool {
	return o.awaitsNode() && !o.known(v.Name) && v.Version == "" && !v.Owner.Known
}
