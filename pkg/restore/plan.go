// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// lookEvery passes between two looks at what is awaited once a restore is under
	// way, and lookNow and then while nothing was touched.
	lookEvery      = time.Second
	lookNowAndThen = 5 * time.Second
	// untouched is for how long nobody may have taken up the EtcdCluster until that is
	// reported.
	untouched = 15 * time.Second
	// repeatWindow begins when the first member serves. A cluster that is lost within it
	// is recreated from the same backup. Later, it may hold writes that somebody needs.
	repeatWindow = 15 * time.Minute
	// maxRecreations limits the creations of an EtcdCluster within recreationWindow.
	maxRecreations   = 3
	recreationWindow = 5 * time.Minute
	// maxEdits limits how often the restore follows an edit of the EtcdCluster at once within
	// editsWindow. Each time costs writes.
	maxEdits    = 3
	editsWindow = time.Minute
)

// verdict is what is to be done about an EtcdRestore now: the status is put on record
// first, and then the step is done.
type verdict struct {
	status api.RestoreStatus
	step   step // nil: nothing
	// wait is how long the next look may wait where nothing was changed.
	wait time.Duration
	// consumed means that the outcome of an attempt is on record with the status.
	consumed bool
	// overtaken means that the EtcdCluster was edited since it was last looked at.
	overtaken bool
	// needsPerson reports whether the restore waits for what only a person can do.
	needsPerson bool
}

// plan decides by the observation alone. Its rules are in the order of the steps:
// the first that has something to say is followed.
func plan(o *observation) verdict {
	for _, rule := range []func(*observation) *verdict{
		finish,       // it has succeeded: tidy up, and never act again
		endUntouched, // it is being deleted, and nothing was touched
		giveUp,       // its namespace is being deleted
		withdraw,     // nobody asks for the recovery any more, and nothing was touched
		choose,       // the backup is read as a whole; only then all is on record
		endServed,    // it is being deleted, and its cluster serves
		hold,         // from here on it stays until it has come to its end
		stop,         // the old cluster ends
		makeRoom,     // for volumes where there is no room for both
		create,       // the new one is made, to begin with the backup
		grow,         // until all its members serve
	} {
		if v := rule(o); v != nil {
			v.needsPerson = v.needsPerson || clusterNeedsPerson(o, v)
			return *v
		}
	}
	return verdict{status: *o.obj.Status.DeepCopy(), wait: loop.LongestSleep}
}

// at is a verdict that shows how far the restore is, and what it waits for.
func (o *observation) at(phase api.RestorePhase, reason string) *verdict {
	v := &verdict{status: *o.obj.Status.DeepCopy(), wait: lookEvery}
	v.status.Phase, v.status.Reason = phase, reason
	if o.trouble != "" {
		v.status.Reason = strings.TrimPrefix(reason+"; "+o.trouble+"; it is tried again", "; ")
	}
	if v.status.StartDate == nil {
		v.status.StartDate = notice.Timestamp(o.now)
	}
	return v
}

// do adds a step to a verdict.
func (v *verdict) do(s step) *verdict {
	v.step = s
	return v
}

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

// hold has the EtcdRestore stay, should somebody delete it, as long as a cluster is
// down that it can bring back.
func hold(o *observation) *verdict {
	if hasFinalizer(o.obj) || o.obj.DeletionTimestamp != nil {
		return nil
	}
	return o.at(o.phase(), o.obj.Status.Reason).do(putFinalizer{})
}

// stop ends the old cluster. The finalizer keeps its EtcdCluster until its pods have
// ended, and with it the garbage collector from what belongs to it; what is being
// deleted the etcd operator leaves alone.
func stop(o *observation) *verdict {
	if o.phase() != api.RestorePhaseStopping {
		return nil
	}
	c, replaced := o.cluster, o.obj.Status.ReplacedUID
	old := c != nil && replaced != "" && c.uid() == replaced
	running, ending, lost := o.leftovers.sorted(o.now)
	v := o.at(api.RestorePhaseStopping, "the old cluster is being stopped")
	switch left := &o.leftovers; {
	case !o.tokenUsable():
		return o.ensureToken(v)
	case old && !c.deleting() && o.lossUnseen:
		return o.at(api.RestorePhaseStopping, nobodySeesTheLoss).helpless()
	case old && !c.deleting():
		return stopOld(o, v)
	case len(left.services) > 0:
		return v.do(disownServices{left.services, replaced})
	case len(left.volumes) > 0 && o.obj.Spec.EffectiveOldVolumes() == api.OldVolumesDeleteFirst:
		return v.do(deleteVolumes{volumes: left.volumes})
	case len(left.volumes) > 0:
		return v.do(setAside{left.volumes, replaced})
	case len(running) > 0:
		return v.do(deletePods{running})
	case len(ending) > 0:
		return o.at(api.RestorePhaseStopping, "waiting for the end of the old cluster's pods: "+podNames(ending))
	case old && c.hasFinalizer():
		return v.do(letGo{cluster: c.live, lost: lost})
	case old:
		return o.at(api.RestorePhaseStopping, "waiting for the old EtcdCluster to go: somebody else keeps it by the finalizers "+strings.Join(c.live.GetFinalizers(), ", ")).helpless()
	}
	return o.at(api.RestorePhaseCreating, "the EtcdCluster is being made")
}

// editedAgain is the reason of a restore that waits for an EtcdCluster that stays as it is.
const editedAgain = "somebody edits the EtcdCluster again and again, and the restore looks at it once more within a minute: stop the tool that writes to it"

// stopOld deletes the old EtcdCluster. What somebody has made of it since the backup
// was read goes into the status first: nobody's edit is lost.
func stopOld(o *observation, v *verdict) *verdict {
	c := o.cluster
	now, err := manifestOf(c.live)
	if err != nil {
		return o.at(api.RestorePhaseStopping, err.Error())
	}
	was, err := saved(&o.obj.Status)
	if err != nil {
		return o.at(api.RestorePhaseStopping, err.Error()+": the CustomResourceDefinition "+api.EtcdRestoreCRDName+" is not this operator's, or somebody changes what is written; nothing is touched until then").helpless()
	}
	if why := cannotReplace(o, now); why != "" {
		return o.at(api.RestorePhaseStopping, "the EtcdCluster was edited: "+why).helpless()
	}
	switch {
	case was != now && o.edits >= maxEdits:
		return o.at(api.RestorePhaseStopping, editedAgain)
	case was != now:
		v.status.Cluster, v.overtaken = now.raw(), true
		return v
	case !c.hasFinalizer():
		return v.do(holdCluster{c.live})
	}
	return v.do(deleteCluster{cluster: c.live, unchanged: true})
}

// makeRoom deletes volumes that were set aside, where the spec says by now that they
// need not be kept.
func makeRoom(o *observation) *verdict {
	if len(o.setAside) == 0 || o.obj.Spec.EffectiveOldVolumes() != api.OldVolumesDeleteFirst {
		return nil
	}
	return o.at(o.phase(), "the old volumes are being deleted").do(deleteVolumes{volumes: o.setAside})
}

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
	}
	if from := c.status.RestoredFrom; from.SHA256 != "" && from.SHA256 != v.status.Backup.SHA256 {
		// An edit came too late for it to be followed.
		v.status.Backup = servedBackup(c, v.status.Backup.Generation)
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

// mayRepeat reports whether nobody can have come to rely on the restored cluster.
func (o *observation) mayRepeat() bool {
	served := o.obj.Status.ServedDate
	return served == nil || o.now.Sub(served.Time) < repeatWindow
}

// servedBackup is what a cluster says of the backup that it began with.
func servedBackup(c *clusterState, generation int64) *api.RestoredBackup {
	from := c.status.RestoredFrom
	b := &api.RestoredBackup{Generation: generation, Key: from.Key, SHA256: from.SHA256, EtcdRevision: from.EtcdRevision, Revision: from.Revision}
	if b.Revision > 0 {
		b.BumpRevision = from.BumpRevision
	}
	seed, err := api.SeedBackupOf(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Annotations: c.live.GetAnnotations()}})
	if err == nil && seed != nil && seed.SHA256 == from.SHA256 {
		b.Size, b.SnapshotSize, b.EtcdVersion = seed.Size, seed.SnapshotSize, seed.EtcdVersion
	}
	return b
}

// restoredAt is when the restore succeeded, as its annotation shows; nil: it does not.
func restoredAt(obj *api.EtcdRestore) *metav1.Time {
	t, err := time.Parse(time.RFC3339, obj.Annotations[api.RestoredAnnotation])
	if err != nil {
		return nil
	}
	return notice.Timestamp(t)
}
