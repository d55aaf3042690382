// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// maxEdits limits how often the restore follows an edit of the EtcdCluster at once within
	// editsWindow. Each time costs writes.
	maxEdits    = 3
	editsWindow = time.Minute
)

// stop ends the old cluster. The finalizer keeps its EtcdCluster until its pods have
// ended, and with it the garbage collector from what belongs to it. What is being
// deleted the etcd operator leaves alone, but for an import that is under way.
func stop(o *observation) *verdict {
	if o.phase() != api.RestorePhaseStopping {
		return nil
	}
	c, replaced := o.cluster, o.obj.Status.ReplacedUID
	old := c != nil && replaced != "" && c.uid() == replaced
	running, ending, lost := o.leftovers.sorted(o.now)
	deleteFirst := o.obj.Spec.EffectiveOldVolumes() == api.OldVolumesDeleteFirst
	left, forward := &o.leftovers, ""
	if old && c.deleting() && (c.hasFinalizer() || len(left.volumes)+len(left.services) == 0) {
		if _, committed := c.importing(); committed && c.keptByImport() {
			forward = "; " + importKeeps(c) // it may make new pods meanwhile
		}
	}
	v := o.at(api.RestorePhaseStopping, "the old cluster is being stopped"+forward)
	switch {
	case !o.tokenUsable():
		return o.ensureToken(v)
	case old && !c.deleting() && o.lossUnseen:
		return o.at(api.RestorePhaseStopping, nobodySeesTheLoss).helpless()
	case old && !c.deleting() && o.readyAgain != "":
		return o.at(api.RestorePhaseStopping, o.readyAgain).helpless()
	case old && !c.deleting():
		return stopOld(o, v)
	case len(left.volumes) > 0 && !deleteFirst:
		// They may be all that is left of the data. A restore that hangs later must not hold them.
		return v.do(setAside{left.volumes, replaced})
	case len(left.services) > 0:
		return v.do(disownServices{left.services, replaced})
	case len(left.volumes) > 0:
		return v.do(deleteVolumes{volumes: left.volumes})
	case len(running) > 0:
		return v.do(deletePods{running})
	case len(ending) > 0:
		return o.at(api.RestorePhaseStopping, "waiting for the end of the old cluster's pods: "+podNames(ending)+forward)
	case old && c.hasFinalizer():
		return v.do(letGo{cluster: c.live, lost: lost})
	case old && importKeeps(c) != "":
		return o.at(api.RestorePhaseStopping, "waiting for the old EtcdCluster to go: "+importKeeps(c)).helpless()
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
