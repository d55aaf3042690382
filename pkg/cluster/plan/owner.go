// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/etcd-operator/etcd-operator/pkg/manifest"

// followOwner recreates a pod as the user whose files its data is. It needs no quorum: the pod
// serves nothing, and its data may be what the quorum lacks. The volume's record comes first,
// because it decides how the operator recreates the pod. A user whom Kubernetes refuses is not recorded:
// a lost pod would not come back.
func followOwner(o *Observation) Step {
	for _, p := range o.Pods {
		v := o.Volume(p.Name)
		if v == nil || v.Deleting || p.Deleting || p.DeletePutOff || p.Running || !manifest.MayRunAs(&o.Spec, p.DataOwner) || p.RunsAs.User == p.DataOwner.User || p.OwnerPutOff {
			continue
		}
		switch {
		case v.Owner == p.DataOwner:
			return RecyclePod{Name: p.Name, UID: p.UID, Seen: p.Seen, Version: p.Version, Owner: p.DataOwner, Why: "its data belongs to user " + p.DataOwner.String()}
		case !v.PutOff:
			return SetVolumeOwner{Name: v.Name, UID: v.UID, Owner: p.DataOwner, Version: p.Version}
		}
	}
	return nil
}

// ownerToRecord returns the user as whom a healthy member runs, so that its pod can be recreated as that
// user. An earlier operator ran it, or somebody has given its data to that user. It is zero if it is
// on record or the operator's own.
func ownerToRecord(m MemberState) manifest.Owner {
	if m.Pod == nil || m.Volume == nil {
		return manifest.Owner{}
	}
	if m.Volume.Owner.Known && m.Volume.Owner.User == m.Pod.RunsAs.User || !m.Volume.Owner.Known && m.Volume.Template != "" {
		return manifest.Owner{}
	}
	return m.Pod.RunsAs
}
