// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// starting reports how far the first member is.
func starting(o *observation) string {
	if o.cluster == nil {
		return ""
	}
	c, size := o.cluster, o.obj.Status.Backup.Size
	var text string
	switch {
	case c.spec.Paused:
		return fmt.Sprintf("the EtcdCluster has spec.paused: true, so nobody starts its first member: set it to false (kubectl edit etcdcluster %s)", c.live.GetName())
	case c.status.Phase == api.ClusterPhaseNone && o.now.Sub(c.live.GetCreationTimestamp().Time) >= untouched:
		return fmt.Sprintf("no etcd operator has taken up the EtcdCluster since %s: look whether one runs for its namespace, and in a version that restores; the scope of the EtcdCluster is the annotation %s",
			c.live.GetCreationTimestamp().UTC().Format(time.RFC3339), api.ScopeAnnotation)
	case o.served <= 0:
		text = "waiting for the first member to start on the backup"
	case o.served < size:
		text = fmt.Sprintf("the first member has fetched %s of %s", notice.Bytes(o.served), notice.Bytes(size))
	default:
		text = "the first member has fetched the backup, and starts on it"
	}
	if o.unserved != "" && o.served < size {
		text += "; the last time it could not be given: " + o.unserved
	}
	if o.unreached != "" && o.served < size {
		text += "; it may not find the restore operator: " + o.unreached
	}
	return text + clusterSays(c)
}

// growing reports how many members the cluster has.
func growing(o *observation) string {
	c := o.cluster
	text := fmt.Sprintf("the first member serves; %d of %d members are healthy", c.status.ReadyMembers, c.spec.Size)
	if a := c.status.Condition(api.ClusterConditionAvailable); a.Status == corev1.ConditionFalse {
		text += "; but the cluster is not available: " + a.Message
	}
	return text + clusterSays(c)
}

// tooLate says with what the cluster began where that is not by the last edit; "": it is. The first
// member serves, so no edit changes the data any more.
func tooLate(o *observation) string {
	if !o.servesOther() && o.obj.Status.Backup.Generation >= generation(o.obj) {
		return ""
	}
	from := o.cluster.status.RestoredFrom
	text := "An edit of the EtcdRestore came too late to change the data: the cluster began with " + from.Key
	if from.Revision > 0 {
		text += fmt.Sprintf(", taken to revision %d", from.Revision)
	}
	if from.BumpRevision > 0 {
		text += fmt.Sprintf(", with bumpRevision %d", from.BumpRevision)
	}
	return text + "; to restore by the edit, delete the EtcdRestore and make another"
}

func clusterSays(c *clusterState) string {
	if c.status.Reason == "" {
		return ""
	}
	return "; the EtcdCluster says: " + c.status.Reason
}

// inTheWay reports an EtcdCluster that holds data which is not of the backup.
func inTheWay(c *clusterState) string {
	if c.unreadable != "" {
		return c.unreadable
	}
	if c.annotation() != "" && c.status.RestoredFrom == nil {
		return fmt.Sprintf("the EtcdCluster is in phase %s without the backup, though it was to begin with that: the etcd operator that runs here does not know restores; upgrade it first, or the same happens again; then delete the EtcdCluster (kubectl delete etcdcluster %s), which may hold what was written since, and it is made from the backup",
			c.status.Phase, c.live.GetName())
	}
	return fmt.Sprintf("an EtcdCluster of the name is in phase %s that did not begin with the backup: somebody else has made it meanwhile, and it may hold what was written since; delete it (kubectl delete etcdcluster %s), and it is made from the backup; keep others from making it again until then",
		c.status.Phase, c.live.GetName())
}

// keptBy names who keeps an EtcdCluster that is being deleted.
func keptBy(c *clusterState) string {
	if len(c.live.GetFinalizers()) == 0 {
		return ""
	}
	text := "; it is kept by the finalizers " + strings.Join(c.live.GetFinalizers(), ", ")
	if why := importKeeps(c); why != "" {
		text += ": " + why
	}
	return text
}

// importKeeps says how an EtcdCluster goes that is being deleted and that its import keeps; "" if none does.
func importKeeps(c *clusterState) string {
	switch underWay, forward := c.importing(); {
	case !underWay || !c.keptByImport():
		return ""
	case forward:
		return "the etcd operator continues its import, which is committed, and needs a quorum to end it: to give the import up, remove the finalizer " + api.ImportFinalizer +
			" from the EtcdCluster; members of the imported etcd that are left are on their own then"
	}
	return "the etcd operator takes its import back first, and the imported etcd must answer for that: start its members; or remove the finalizer " + api.ImportFinalizer +
		" from the EtcdCluster, and undo by hand what the import has changed there: members on its list, or the alarm by which it refuses writes" + clusterSays(c)
}

func podNames(pods []corev1.Pod) string {
	names := make([]string, len(pods))
	for i, p := range pods {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}
