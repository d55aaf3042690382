// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// shortestBackoff passes between a failed attempt and the next. It doubles with
	// each further failure, up to longestBackoff.
	shortestBackoff = 5 * time.Second
	longestBackoff  = 5 * time.Minute
	// patience is for how long a restore is tried that can't begin. Who made it has
	// helped himself otherwise by then, and must not be surprised.
	patience = 24 * time.Hour
)

// choose finds a backup that is whole and fits, and puts on record what is going to
// be done: nothing is touched before that. It begins again with each edit, until the
// first member serves, also one that was made just before a deletion: what it has made
// of the spec can't be taken back, and must not be gone by unchecked.
func choose(o *observation) *verdict {
	st := &o.obj.Status
	if committed(st) && (st.Backup.Generation >= generation(o.obj) || o.began()) {
		return nil
	}
	if waitsForEdit(o.obj) {
		if why := gaveUp(o.obj); why != "" {
			return o.choosing(api.RestorePhaseFailed, why)
		}
		return &verdict{status: *st.DeepCopy(), wait: loop.LongestSleep}
	}
	m, err := o.manifest()
	if why := refused(o, m); why != "" {
		return o.choosing(api.RestorePhaseInvalid, why+"; nothing is done until then")
	}
	if why := tired(o); why != "" {
		return o.choosing(api.RestorePhaseFailed, why)
	}
	if !committed(st) && notChosen(o) {
		return o.choosing(api.RestorePhaseFailed, noLongerChosen)
	}
	if why := obstacle(o); why != "" {
		return o.choosing(api.RestorePhaseRetrying, why)
	}
	if err != nil {
		return o.choosing(api.RestorePhaseRetrying, err.Error())
	}
	seen := st.ObservedGeneration == o.obj.Generation
	switch {
	case o.outcome != nil && o.outcome.generation == generation(o.obj):
		return conclude(o, m)
	case o.reading != nil:
		return o.choosing(api.RestorePhaseVerifying, *o.reading)
	case seen && st.NextExecutionDate != nil && st.NextExecutionDate.After(o.now) && st.NextExecutionDate.Sub(o.now) < 2*longestBackoff:
		// Further away it would be only where the clock was set back.
		return &verdict{status: *st.DeepCopy(), wait: min(lookNowAndThen, st.NextExecutionDate.Sub(o.now))}
	}
	v := o.choosing(api.RestorePhaseVerifying, "the backup is being looked for")
	v.status.NextExecutionDate = nil
	return v.do(begin{m, o.knownRevision()})
}

// choosing is a verdict about the choice of a backup.
func (o *observation) choosing(phase api.RestorePhase, reason string) *verdict {
	waits := phase == api.RestorePhaseInvalid || phase == api.RestorePhaseFailed
	if committed(&o.obj.Status) {
		phase, reason = o.phase(), "the spec was edited: "+reason
	}
	v := o.at(phase, reason)
	v.needsPerson = waits
	v.wait = lookNowAndThen
	if v.status.ObservedGeneration != o.obj.Generation {
		if !committed(&o.obj.Status) {
			v.status.StartDate = notice.Timestamp(o.now)
		}
		v.status.ObservedGeneration = o.obj.Generation
		v.status.Failures, v.status.NextExecutionDate = 0, nil
	}
	if phase == api.RestorePhaseInvalid || phase == api.RestorePhaseFailed || phase == api.RestorePhaseVerifying {
		v.status.NextExecutionDate = nil
	}
	return v
}

// refused says why the spec can't be followed until it is edited.
func refused(o *observation, m manifest) string {
	if errs := api.ValidateEtcdRestore(o.obj); len(errs) > 0 {
		return errs.ToAggregate().Error() + "; edit the EtcdRestore"
	}
	template, begun := o.obj.Spec.ClusterTemplate != nil, committed(&o.obj.Status)
	switch {
	case template && begun && o.obj.Status.ReplacedUID != "":
		return "spec.clusterTemplate is for a cluster that there was none of: remove it; what is to be other than it was, edit in the EtcdCluster itself"
	case template && !begun && o.cluster != nil && !o.cluster.deleting():
		return fmt.Sprintf("there is an EtcdCluster %s: remove spec.clusterTemplate to have it replaced, or restore under another name to leave it alone", o.obj.Name)
	}
	if m == "" {
		return ""
	}
	spec, err := m.spec()
	if err == nil && template && spec.Paused {
		return "spec.clusterTemplate.spec.paused is true, so nobody would start the cluster: remove it"
	}
	if err == nil && o.obj.Spec.BumpRevision > 0 {
		if v, err := etcd.ParseVersion(spec.EffectiveVersion()); err == nil && !v.HasBumpRevision() {
			return fmt.Sprintf("etcd %s can't raise the revision of what it restores, which takes 3.4.27, 3.5.10 or 3.6: remove spec.bumpRevision, or set a later version in the EtcdCluster", v)
		}
	}
	return ""
}

// obstacle says why the restore can't begin now, where that may pass by itself or when
// somebody has done something else than edit it.
func obstacle(o *observation) string {
	if o.token != nil && !o.token.ours && !o.token.former {
		return tokenTaken(o.obj.Name)
	}
	if committed(&o.obj.Status) {
		return ""
	}
	switch c := o.cluster; {
	case c == nil && o.obj.Spec.ClusterTemplate == nil:
		return fmt.Sprintf("there is no EtcdCluster %s in the namespace %s: give spec.clusterTemplate to have one made", o.obj.Name, o.obj.Namespace)
	case c == nil:
		return ""
	case c.unreadable != "":
		return c.unreadable
	case c.deleting() && o.obj.Spec.ClusterTemplate != nil:
		return "waiting for an EtcdCluster of the name to go, which is being deleted" + keptBy(c)
	case c.spec.Paused:
		return paused(o)
	case o.lossUnseen:
		return nobodySeesTheLoss
	case o.readyAgain != "":
		return o.readyAgain
	}
	return awaitImport(o.cluster)
}

// awaitImport says why an EtcdCluster can't be replaced now that is in the middle of an import. The
// etcd operator continues that during a deletion, and must not lose its members meanwhile.
func awaitImport(c *clusterState) string {
	name := c.live.GetName()
	switch underWay, forward := c.importing(); {
	case !underWay, c.deleting() && (forward || !c.keptByImport()):
		// Whoever deletes it after the commit gives the import up. The restore sets its volumes aside first.
		return ""
	case c.deleting():
		return "waiting for the EtcdCluster to go, which is being deleted" + keptBy(c)
	case forward:
		return fmt.Sprintf("the EtcdCluster %s is in the middle of an import that is committed: wait for its end, and start the members that it waits for; "+
			"if they are gone for good, delete the EtcdCluster (kubectl delete etcdcluster %s --wait=false): the restore then begins, and says when to remove the finalizer of the import%s", name, name, clusterSays(c))
	}
	return fmt.Sprintf("the EtcdCluster %s is in the middle of an import, and the imported etcd has all data: let the import end; "+
		"or delete the EtcdCluster to go back, and give spec.clusterTemplate when it is gone; or restore under another name%s", name, clusterSays(c))
}

const nobodySeesTheLoss = "no etcd operator has confirmed for two minutes that the EtcdCluster has no quorum (status.recovery.lastUpdateTime): a quorum may be back; the restore continues as soon as one does"

const noLongerChosen = "the EtcdCluster no longer asks for this recovery (status.recovery.choice): a quorum is back, or somebody has edited the annotation " + api.RecoverAnnotation + " or spec.recovery.mode; delete the EtcdRestore"

// withdraw is for a recovery of a lost quorum whose backup is on record, and that is no longer
// chosen. Until the deletion of the old EtcdCluster, all is as it was. The operator may have been
// down since the commitment, and the quorum back.
func withdraw(o *observation) *verdict {
	if !committed(&o.obj.Status) || !o.untouched() || o.cluster == nil || o.cluster.unreadable != "" || !notChosen(o) {
		return nil
	}
	if o.cluster.hasFinalizer() {
		return o.at(o.phase(), noLongerChosen).do(letGo{cluster: o.cluster.live})
	}
	v := o.at(api.RestorePhaseFailed, noLongerChosen)
	v.needsPerson, v.wait = true, lookNowAndThen
	v.status.ObservedGeneration = o.obj.Generation
	v.status.Backup, v.status.Cluster, v.status.ReplacedUID, v.status.NextExecutionDate = nil, nil, "", nil
	return v
}

// notChosen reports whether the way out of a lost quorum that the restore follows is no longer
// chosen. A quorum that has come back may have taken writes.
func notChosen(o *observation) bool {
	begun := o.obj.Annotations[api.RecoveryAnnotation]
	if begun == "" {
		return false
	}
	if o.cluster == nil || o.cluster.deleting() || o.cluster.status.Recovery == nil {
		return true
	}
	c := o.cluster.status.Recovery.Choice
	return c == nil || c.Phase != api.RecoveryRestoring || c.StartDate != begun || c.Automatic && o.personDecides()
}

// personDecides reports whether a person has taken the recovery over from the etcd operator, which
// may not have seen that yet.
func (o *observation) personDecides() bool {
	return o.cluster.unreadable == "" && !o.cluster.spec.RecoversAutomatically() || o.cluster.live.GetAnnotations()[api.RecoverAnnotation] != ""
}

func paused(o *observation) string {
	return fmt.Sprintf("the EtcdCluster %s has spec.paused: true, so nobody may touch it, and nobody would bring it back: set it to false", o.obj.Name)
}

// cannotReplace says why an EtcdCluster as it was edited after the backup was read
// can't be recreated; "" if it can.
func cannotReplace(o *observation, m manifest) string {
	if why := o.cluster.unreadable; why != "" {
		return why
	}
	if o.cluster.spec.Paused {
		return paused(o)
	}
	if err := fits(o.obj.Status.Backup, m); err != nil {
		return err.Error() + "; set its version back"
	}
	return ""
}

// manifest is the EtcdCluster that is to be made.
func (o *observation) manifest() (manifest, error) {
	st := &o.obj.Status
	switch begun := committed(st); {
	case begun && (st.ReplacedUID != "" || o.obj.Spec.ClusterTemplate == nil):
		return saved(st)
	case !begun && o.cluster != nil:
		return manifestOf(o.cluster.live)
	case o.obj.Spec.ClusterTemplate != nil:
		return manifestFrom(o.obj)
	}
	return "", nil // obstacle explains why
}

// conclude puts on record what came of an attempt.
func conclude(o *observation, m manifest) *verdict {
	if o.outcome.err != nil {
		return failed(o)
	}
	if o.outcome.manifest != m { // it was edited meanwhile
		if o.edits >= maxEdits {
			v := o.choosing(api.RestorePhaseRetrying, editedAgain)
			v.consumed, v.status.NextExecutionDate = true, notice.Timestamp(o.now.Add(editsWindow/2))
			return v
		}
		v := o.choosing(api.RestorePhaseVerifying, "the EtcdCluster was edited: it is looked at again")
		v.consumed, v.overtaken = true, true
		return v
	}
	if !hasFinalizer(o.obj) && o.obj.DeletionTimestamp == nil {
		return o.choosing(api.RestorePhaseVerifying, "the backup is whole").do(putFinalizer{})
	}
	v := o.choosing(api.RestorePhaseStopping, "")
	begun := committed(&o.obj.Status)
	v.consumed, v.wait = true, 0
	v.status.Reason, v.status.Failures, v.status.NextExecutionDate = "", 0, nil
	v.status.Backup, v.status.PassedOver = o.outcome.backup.DeepCopy(), firstOf(o.outcome.passedOver)
	v.status.Cluster = m.raw()
	if !begun && o.cluster != nil {
		v.status.ReplacedUID = o.cluster.uid()
	}
	return v
}

func failed(o *observation) *verdict {
	err := o.outcome.err
	phase := api.RestorePhaseRetrying
	if errors.Is(err, errUnfit) {
		phase = api.RestorePhaseFailed
	}
	v := o.choosing(phase, err.Error())
	v.consumed = true
	v.status.Failures++
	v.status.PassedOver = firstOf(o.outcome.passedOver)
	if phase == api.RestorePhaseFailed && !committed(&o.obj.Status) {
		v.status.Reason += "; nothing was touched: edit the EtcdRestore to try another backup, or make another EtcdRestore"
		return v
	}
	pause := min(shortestBackoff<<min(max(v.status.Failures-1, 0), 10), longestBackoff)
	if phase == api.RestorePhaseFailed {
		pause = longestBackoff // nothing but an edit helps
	}
	v.status.NextExecutionDate = notice.Timestamp(notice.RoundUp(o.now.Add(pause)))
	return v
}

// firstOf bounds a list in the status.
func firstOf(list []string) []string {
	const most = 20
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
}

// waitsForEdit reports whether a restore has failed for good, before it touched anything.
// Whatever happens to the cluster or to Kubernetes since, somebody has to ask for it
// again: a cluster may live that must not be replaced any more.
func waitsForEdit(obj *api.EtcdRestore) bool {
	st := &obj.Status
	return !committed(st) && (gaveUp(obj) != "" || st.Phase == api.RestorePhaseFailed && st.ObservedGeneration == obj.Generation)
}

// tired says that a restore has waited for too long to begin; "": it has not. It may have waited for
// an operator, too. A read under way comes to its end.
func tired(o *observation) string {
	st, since := &o.obj.Status, o.obj.WrittenAt()
	if st.ObservedGeneration == o.obj.Generation && st.StartDate != nil {
		since = st.StartDate.Time
	}
	if committed(st) || o.reading != nil || o.outcome != nil || since.IsZero() || o.now.Sub(since) <= patience {
		return ""
	}
	why := fmt.Sprintf("given up after %s, and not tried again by itself: edit the spec of the EtcdRestore, or make another one", patience)
	if st.Reason != "" {
		why += "; the last time: " + notice.Shorten(st.Reason, 2000)
	}
	return why
}

// gaveUp is why a restore was given up by v0.9.4, which did not try again; "" where it
// was not. Whoever made it has long since helped himself otherwise.
func gaveUp(obj *api.EtcdRestore) string {
	st := &obj.Status
	if st.Phase == api.RestorePhaseNone && st.ObservedGeneration == 0 && st.StartDate == nil && !st.Succeeded && st.Reason != "" {
		return notice.Shorten(st.Reason, 2000) + "; so it failed in v0.9.4, and is not tried again by itself: edit the spec of the EtcdRestore, or make another one"
	}
	return ""
}
