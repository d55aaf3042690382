// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// observation is all that plan goes by.
type observation struct {
	now time.Time
	// obj as the API server has it; its status is what is on record.
	obj *api.EtcdRestore
	// url is that of the server of backups.
	url string

	cluster *clusterState // nil: there is none of the name
	token   *tokenState   // nil: there is none
	// leftovers are what belongs to the EtcdCluster that is replaced. They are looked
	// for while it is stopped.
	leftovers leftovers
	// setAside are volumes that this restore has taken from the old cluster. They are
	// looked for when the new one is back.
	setAside []corev1.PersistentVolumeClaim

	// lossUnseen means that the restore follows a way out of a lost quorum, and no etcd operator
	// has reported the loss of late.
	lossUnseen bool
	// readyAgain says that a quorum of its members is ready; "": none is, or nobody has looked.
	readyAgain string

	// reading is how far the attempt under way has come; nil: none is.
	reading *string
	// outcome is what came of the last attempt, where that is not on record yet.
	outcome *outcome
	// served is how much of the backup the first member has been sent; unserved is why
	// the store could not give more of it.
	served   int64
	unserved string
	// unreached is why the first member may not come to the server; "": it can.
	unreached string

	// trouble is why Kubernetes did not do what it was last asked for; "": it did.
	trouble string
	// unacceptable means that the API server did not take the EtcdCluster that is on record.
	unacceptable bool
	// namespaceEnds means that the namespace is being deleted.
	namespaceEnds bool
	// creations is how often the operator created the EtcdCluster within recreationWindow.
	creations int
	// edits is how often an edit of the EtcdCluster made a look in vain within editsWindow.
	edits int
	// denied are steps of the tidying that the operator may not do.
	denied map[string]bool
}

// clusterState is an EtcdCluster.
type clusterState struct {
	live   *unstructured.Unstructured
	status api.ClusterStatus
	spec   api.ClusterSpec
	// unreadable is why it is not understood; "": it is.
	unreadable string
}

func (c *clusterState) uid() types.UID { return c.live.GetUID() }
func (c *clusterState) deleting() bool { return c.live.GetDeletionTimestamp() != nil }
func (c *clusterState) hasFinalizer() bool {
	return slices.Contains(c.live.GetFinalizers(), api.RestoreFinalizer)
}
func (c *clusterState) keptByImport() bool {
	return slices.Contains(c.live.GetFinalizers(), api.ImportFinalizer)
}
func (c *clusterState) annotation() string { return c.live.GetAnnotations()[api.RestoreAnnotation] }

// unserved reports whether the cluster has no member yet that could have served anybody.
func (c *clusterState) unserved() bool {
	return c.unreadable == "" && (c.status.Phase == api.ClusterPhaseNone || c.status.Phase == api.ClusterPhaseCreating)
}

// importing reports whether an import is under way that a deletion of the cluster does not end at once,
// and whether it only goes forward, to its end. Otherwise a deletion takes it back.
func (c *clusterState) importing() (underWay, forward bool) {
	st := c.status.Import
	if !st.Begun() || st.CompletionDate != "" || st.Copies() && !c.unserved() {
		return false, false
	}
	return true, st.CommitDate != "" && !st.Copies()
}

// from reports whether the cluster began with a backup of a restore.
func (c *clusterState) from(restore types.UID) bool {
	return c.status.RestoredFrom != nil && c.status.RestoredFrom.RestoreUID == restore
}

// createdBy reports whether a restore created the cluster.
func (c *clusterState) createdBy(restore types.UID) bool {
	if c.from(restore) {
		return true
	}
	seed, err := api.SeedBackupOf(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Annotations: c.live.GetAnnotations()}})
	return err == nil && seed != nil && seed.RestoreUID == restore
}

// whole reports whether the cluster has all its members, and they serve.
func (c *clusterState) whole() bool {
	return c.status.Phase == api.ClusterPhaseRunning && c.status.ObservedGeneration == c.live.GetGeneration() &&
		c.spec.Size > 0 && c.status.Size == c.spec.Size && c.status.ReadyMembers == c.spec.Size && c.status.Condition(api.ClusterConditionAvailable).Status == corev1.ConditionTrue
}

// leftovers are what belongs to an EtcdCluster that is replaced.
type leftovers struct {
	services []corev1.Service
	volumes  []corev1.PersistentVolumeClaim
	pods     []corev1.Pod
}

// overdue is how long after its last moment a pod that is deleted is waited for: the
// kubelet of a node that is gone never says that it has ended.
const overdue = 30 * time.Second

// running are the pods that are to be deleted, ending those that are waited for, and
// lost those that are not: nobody can report whether they still run.
func (l *leftovers) sorted(now time.Time) (running, ending, lost []corev1.Pod) {
	for _, p := range l.pods {
		switch {
		case p.DeletionTimestamp == nil:
			running = append(running, p)
		case now.Before(p.DeletionTimestamp.Add(overdue)):
			ending = append(ending, p)
		default:
			lost = append(lost, p)
		}
	}
	return running, ending, lost
}

// committed reports whether the old cluster may have been touched.
func committed(st *api.RestoreStatus) bool { return st.Cluster != nil && st.Backup != nil }

// untouched reports whether all is as if there had been no restore. Of the old cluster
// that is so until its EtcdCluster is deleted: a finalizer on it can be taken off. Where
// there was none, it is so until one is made.
func (o *observation) untouched() bool {
	st, c := &o.obj.Status, o.cluster
	switch {
	case !committed(st):
		return true
	case st.ReplacedUID == "":
		return c == nil && st.ServedDate == nil && (o.phase() == api.RestorePhaseStopping || o.phase() == api.RestorePhaseCreating)
	}
	return c != nil && c.uid() == st.ReplacedUID && !c.deleting() && !c.createdBy(o.obj.UID) && o.phase() == api.RestorePhaseStopping
}

// generation counts the edits of the spec. That of the object counts its deletion too.
func generation(obj *api.EtcdRestore) int64 {
	if obj.DeletionTimestamp != nil {
		return obj.Generation - 1
	}
	return obj.Generation
}

// phase is how far the restore has come since then.
func (o *observation) phase() api.RestorePhase {
	switch p := o.obj.Status.Phase; p {
	case api.RestorePhaseCreating, api.RestorePhaseStarting, api.RestorePhaseGrowing:
		return p
	default:
		return api.RestorePhaseStopping
	}
}

// hasFinalizer reports whether the EtcdRestore has the finalizer.
func hasFinalizer(obj *api.EtcdRestore) bool {
	return slices.Contains(obj.Finalizers, api.RestoreFinalizer)
}

// done reports whether the restore has succeeded, whatever became of its status. While
// one is under way, the mark alone says nothing: somebody has applied the manifest of
// an earlier EtcdRestore. The status records a whole cluster before the mark.
func done(obj *api.EtcdRestore) bool {
	marked := obj.Annotations[api.RestoredAnnotation] != ""
	return obj.Status.Succeeded || marked && (!committed(&obj.Status) || obj.Status.CompletionDate != nil)
}

// mine reports whether the EtcdCluster is the one that this restore has made.
func (o *observation) mine() bool {
	return o.cluster != nil && o.obj.Status.ClusterUID != "" && o.cluster.uid() == o.obj.Status.ClusterUID
}

// began reports whether the first member serves what this restore was about.
func (o *observation) began() bool {
	return o.cluster != nil && !o.cluster.deleting() && !o.cluster.unserved() && o.cluster.from(o.obj.UID)
}

// seed is what the EtcdCluster learns of the backup.
func (o *observation) seed() api.SeedBackup {
	b := o.obj.Status.Backup
	return api.SeedBackup{
		Restore: o.obj.Name, RestoreUID: o.obj.UID,
		URL: o.url + o.obj.Name, Secret: tokenSecret(o.obj.Name),
		Size: b.Size, SHA256: b.SHA256, SnapshotSize: b.SnapshotSize, Revision: b.Revision, BumpRevision: bumpOf(o.obj),
		Key: b.Key, EtcdVersion: b.EtcdVersion, EtcdRevision: b.EtcdRevision,
	}
}
