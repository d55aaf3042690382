// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// repeatWindow begins when the first member serves. A cluster that is lost within it
	// is recreated from the same backup. Later, it may hold writes that somebody needs.
	repeatWindow = 15 * time.Minute
	// maxRecreations limits the creations of an EtcdCluster within recreationWindow.
	maxRecreations   = 3
	recreationWindow = 5 * time.Minute
)

// create makes the EtcdCluster. Somebody else's in its place is deleted only while
// nobody can have written to it.
func create(o *observation) *verdict {
	if o.phase() != api.RestorePhaseCreating {
		return nil
	}
	c := o.cluster
	v := o.at(api.RestorePhaseCreating, "the EtcdCluster is being made")
	switch {
	case !o.tokenUsable():
		return o.ensureToken(v)
	case c == nil && o.creations >= maxRecreations:
		return o.at(api.RestorePhaseCreating, fmt.Sprintf("somebody deletes the EtcdCluster as soon as it is made, which was done %d times within %s: look at what its ownerReferences name (kubectl get etcdrestore %s -o jsonpath='{.status.cluster}'); if an owner is gone, Kubernetes deletes it", o.creations, recreationWindow, o.obj.Name)).helpless()
	case c == nil && o.unacceptable:
		return o.at(api.RestorePhaseCreating, fmt.Sprintf("the API server does not take the EtcdCluster as it is in status.cluster: correct it there (kubectl edit etcdrestore %s --subresource=status)", o.obj.Name)).helpless().do(createCluster{o.seed()})
	case c == nil:
		return v.do(createCluster{o.seed()})
	case c.deleting() && c.hasFinalizer():
		return v.do(letGo{cluster: c.live})
	case c.deleting():
		return o.at(api.RestorePhaseCreating, "waiting for an EtcdCluster of the name to go, which is being deleted"+keptBy(c))
	case o.began(), c.createdBy(o.obj.UID) && c.annotation() == o.seed().String() && c.unserved():
		v = o.at(api.RestorePhaseStarting, starting(o))
		v.status.ClusterUID = c.uid()
		return v
	case c.unserved():
		why := "somebody else has made it, without the backup"
		if c.createdBy(o.obj.UID) {
			why = "it was made for another backup than is now asked for"
		}
		return v.do(deleteCluster{cluster: c.live, unchanged: true, why: why})
	}
	return o.at(api.RestorePhaseCreating, inTheWay(c)).helpless()
}

// grow awaits the new cluster.
func grow(o *observation) *verdict {
	c := o.cluster
	starting := o.at(api.RestorePhaseStarting, starting(o))
	switch {
	case !o.mine() && !o.mayRepeat():
		return o.at(o.phase(), "the EtcdCluster was deleted after it had served, and is not recreated: "+afresh).helpless()
	case !o.mine():
		v := o.at(api.RestorePhaseCreating, "the EtcdCluster is gone before it was whole: it is recreated")
		v.status.ClusterUID = ""
		return v
	case c.deleting():
		return o.at(o.phase(), "somebody has deleted the EtcdCluster before it was whole: it is recreated when it is gone"+keptBy(c))
	case c.unreadable != "":
		return o.at(o.phase(), c.unreadable).helpless()
	case c.status.Phase == api.ClusterPhaseFailed && !o.mayRepeat():
		return o.at(o.phase(), "all members were lost with their data after the cluster had served, which is not repeated by itself: "+afresh).helpless()
	case c.status.Phase == api.ClusterPhaseFailed:
		v := o.at(api.RestorePhaseStopping, "all members were lost with their data before the cluster was whole: it is recreated from the same backup")
		v.status.ReplacedUID, v.status.ClusterUID = c.uid(), ""
		return v
	case c.unserved() && c.annotation() != o.seed().String():
		return starting.do(deleteCluster{cluster: c.live, unchanged: true, why: "it was made for another backup than is now asked for"})
	case c.unserved() && !o.tokenUsable():
		return o.ensureToken(starting)
	case c.unserved():
		return starting
	case !c.from(o.obj.UID):
		return o.at(o.phase(), inTheWay(c)).helpless()
	}
	v := o.at(api.RestorePhaseGrowing, growing(o))
	if v.status.ServedDate == nil {
		v.status.ServedDate = notice.Timestamp(o.now)
		v.late = tooLate(o)
	}
	if o.servesOther() { // an edit came too late for it to be followed
		v.status.Backup = servedBackup(c, v.status.Backup)
	}
	if c.whole() {
		v.status.CompletionDate = notice.Timestamp(o.now)
		return v.do(markRestored{c.live})
	}
	v.status.CompletionDate = nil // it was whole, and was not marked in time
	return v
}

// afresh is what to do where a restore is not repeated.
const afresh = "a newer backup may hold what was written since; delete this EtcdRestore and make another"

// mayRepeat reports whether nobody can have come to rely on the restored cluster. A date in the future is
// that of another clock, and says nothing.
func (o *observation) mayRepeat() bool {
	served := o.obj.Status.ServedDate
	return served == nil || o.now.Sub(served.Time).Abs() < repeatWindow
}

// servesOther reports whether the cluster began with other data than is on record, or with other
// revisions of it.
func (o *observation) servesOther() bool {
	from, b := o.cluster.status.RestoredFrom, o.obj.Status.Backup
	return from.SHA256 != "" && (from.SHA256 != b.SHA256 || from.Revision != b.Revision || from.BumpRevision != bumpOf(o.obj))
}

// servedBackup is what a cluster says of the backup that it began with. Of the same object, the
// record knows more.
func servedBackup(c *clusterState, recorded *api.RestoredBackup) *api.RestoredBackup {
	from := c.status.RestoredFrom
	if from.SHA256 == recorded.SHA256 && from.Key == recorded.Key {
		b := recorded.DeepCopy()
		b.Revision, b.BumpRevision = from.Revision, 0
		if b.Revision > 0 {
			b.BumpRevision = from.BumpRevision
		}
		return b
	}
	b := &api.RestoredBackup{Generation: recorded.Generation, Key: from.Key, SHA256: from.SHA256, EtcdRevision: from.EtcdRevision, Revision: from.Revision}
	if b.Revision > 0 {
		b.BumpRevision = from.BumpRevision
	}
	seed, err := api.SeedBackupOf(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Annotations: c.live.GetAnnotations()}})
	if err == nil && seed != nil && seed.SHA256 == from.SHA256 {
		b.Size, b.SnapshotSize, b.EtcdVersion = seed.Size, seed.SnapshotSize, seed.EtcdVersion
	}
	return b
}
