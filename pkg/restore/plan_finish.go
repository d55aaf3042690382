// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// finish is for a restore that has succeeded. What marks that outlives its status, so
// that one that comes back with a backup of Kubernetes itself destroys no cluster.
func finish(o *observation) *verdict {
	st := &o.obj.Status
	switch {
	case !done(o.obj):
		return nil
	case hasFinalizer(o.obj):
		return tidy(o)
	case (st.Phase == api.RestorePhaseSucceeded || !st.Succeeded && !committed(st) && st.Phase == api.RestorePhaseInvalid) && (st.ObservedGeneration == o.obj.Generation || o.obj.DeletionTimestamp != nil):
		return &verdict{status: *st.DeepCopy(), wait: loop.LongestSleep}
	}
	v := &verdict{status: *st.DeepCopy(), wait: loop.LongestSleep}
	v.status.ObservedGeneration = o.obj.Generation
	if !st.Succeeded && !committed(st) {
		v.status.Phase = api.RestorePhaseInvalid
		v.status.Reason = "the annotation " + api.RestoredAnnotation + " reports a success, and no status does: nothing is done; take the annotation off to have the cluster restored"
		return v
	}
	v.status.Phase, v.status.Succeeded = api.RestorePhaseSucceeded, true
	when := restoredAt(o.obj)
	if v.status.CompletionDate == nil {
		v.status.CompletionDate = when
	}
	v.status.Reason = "it has succeeded already, and nothing is done again: to restore once more, delete the EtcdRestore and make another"
	if o.obj.Annotations[api.RestoredAnnotation] != "" {
		v.status.Reason += " without the annotation " + api.RestoredAnnotation
	}
	return v
}

// tidy removes what the restore no longer needs. What it may not remove is reported, and
// stays: the cluster is back.
func tidy(o *observation) *verdict {
	v := o.at(api.RestorePhaseGrowing, "the cluster is back: what the restore no longer needs is removed")
	c, st := o.cluster, &o.obj.Status
	if st.Phase == api.RestorePhaseSucceeded { // it was reported, and another operator tries again what one could not remove
		v.status = *st.DeepCopy()
	}
	switch {
	case o.mine() && !c.deleting() && c.annotation() != "" && !o.denied[deniedAnnotation]:
		return v.do(unannotate{c.live})
	case len(o.setAside) > 0 && o.obj.Spec.EffectiveOldVolumes() != api.OldVolumesKeep && !o.denied[deniedVolumes]:
		return v.do(deleteVolumes{volumes: o.setAside, restored: true})
	case o.token != nil && o.token.ours && !o.denied[deniedToken]:
		return v.do(deleteToken{uid: o.token.uid, tidying: true})
	}
	if st.Phase != api.RestorePhaseSucceeded {
		v.status.Phase, v.status.Succeeded, v.status.Reason = api.RestorePhaseSucceeded, true, ""
		v.status.ObservedGeneration = o.obj.Generation
		if v.status.CompletionDate == nil {
			v.status.CompletionDate = restoredAt(o.obj)
		}
		if v.status.CompletionDate == nil {
			v.status.CompletionDate = notice.Timestamp(o.now)
		}
		return v
	}
	v.status = *st.DeepCopy()
	return v.do(release{})
}

// restoredAt is when the restore succeeded, as its annotation shows; nil: it does not.
func restoredAt(obj *api.EtcdRestore) *metav1.Time {
	t, err := time.Parse(time.RFC3339, obj.Annotations[api.RestoredAnnotation])
	if err != nil {
		return nil
	}
	return notice.Timestamp(t)
}

// endUntouched is for an EtcdRestore that is deleted before anything was touched, with
// whatever edit came before the deletion.
func endUntouched(o *observation) *verdict {
	if o.obj.DeletionTimestamp == nil || !o.untouched() {
		return nil
	}
	v := &verdict{status: *o.obj.Status.DeepCopy(), wait: loop.LongestSleep}
	switch {
	case committed(&o.obj.Status) && o.cluster != nil && o.cluster.hasFinalizer():
		v.step = letGo{cluster: o.cluster.live}
	case hasFinalizer(o.obj):
		v.step = release{}
	}
	return v
}

// giveUp is for a namespace that goes, in which nothing can be made any more: nothing
// of ours may keep it. It is also for the test of a backup: there is no cluster to bring back.
func giveUp(o *observation) *verdict {
	ended := o.obj.IsTest() && o.obj.DeletionTimestamp != nil
	if !o.namespaceEnds && !ended || !committed(&o.obj.Status) {
		return nil
	}
	v := o.at(o.phase(), "the namespace is being deleted: the restore ends with it")
	if ended {
		v = o.at(o.phase(), "the test of the backup has ended")
	}
	v.wait = loop.LongestSleep
	switch {
	case o.cluster != nil && o.cluster.hasFinalizer():
		v.step = letGo{cluster: o.cluster.live}
	case hasFinalizer(o.obj):
		v.step = release{}
	}
	return v
}

// endServed is for an EtcdRestore that is deleted while its cluster grows: that serves,
// and is left as it is, and so are the old volumes.
func endServed(o *observation) *verdict {
	if o.obj.DeletionTimestamp == nil || !committed(&o.obj.Status) || o.obj.Status.ServedDate == nil || o.phase() != api.RestorePhaseGrowing {
		return nil
	}
	v := o.at(o.phase(), "deleted before the cluster had all its members: the cluster is left as it is")
	switch c := o.cluster; {
	case o.mine() && !c.deleting() && c.annotation() != "" && !o.denied[deniedAnnotation]:
		return v.do(unannotate{c.live})
	case hasFinalizer(o.obj):
		return v.do(release{})
	}
	return v
}
