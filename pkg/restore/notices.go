// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// notices reports what becomes of a restore, in events and in the log.
type notices struct {
	notice.Board[*api.EtcdRestore]

	failures notice.Failures
}

// changed reports what is on record now.
func (n *notices) changed(before, st *api.RestoreStatus, now time.Time) {
	if !committed(before) && committed(st) || committed(before) && committed(st) && before.Backup.Generation < st.Backup.Generation {
		n.verified(before, st)
	}
	if st.Failures > before.Failures {
		n.failed(st, now)
		return
	}
	if st.Phase == before.Phase {
		return
	}
	switch st.Phase {
	case api.RestorePhaseInvalid:
		n.Warning("Restore Invalid", "%s", st.Reason)
	case api.RestorePhaseFailed:
		n.Warning("Restore Failed", "%s", st.Reason)
	case api.RestorePhaseRetrying:
		n.failed(st, now)
	case api.RestorePhaseGrowing:
		n.Normal("First Member Serves", "The first member serves the data of %s; the others join it", st.Backup.Key)
	case api.RestorePhaseSucceeded:
		if before.Backup != nil {
			n.Normal("Restore Succeeded", "The cluster is back with all its members, and the data of %s", before.Backup.Key)
		}
	}
}

func (n *notices) verified(before, st *api.RestoreStatus) {
	b, then := st.Backup, "the EtcdCluster is made"
	switch {
	case committed(before):
		then = "it takes the place of the one before"
	case st.ReplacedUID != "":
		then = "the old cluster is stopped now"
	}
	text := fmt.Sprintf("Read all of %s (%s): it is whole", b.Key, notice.Bytes(b.Size))
	if b.EtcdVersion != "" {
		text += fmt.Sprintf(", revision %d of etcd %s", b.EtcdRevision, b.EtcdVersion)
	}
	if b.Revision > 0 {
		text += fmt.Sprintf("; the restore takes it back to revision %d", b.Revision)
	}
	if b.Uncertain {
		text += "; it was taken while etcd had no quorum: writes may be missing in it"
	}
	n.Normal("Backup Verified", "%s; %s", text, then)
}

// failed reports the first failure in a row, and others now and then.
func (n *notices) failed(st *api.RestoreStatus, now time.Time) {
	if !n.failures.News(st.Reason, now) {
		n.Log.WithField("failures", st.Failures).Warn("the restore can't begin: " + st.Reason)
		return
	}
	n.Warning("Restore Failed", "%s", st.Reason)
}

func (n *notices) created(seed api.SeedBackup) {
	n.Normal("Cluster Created", "Made the EtcdCluster, to begin with %s", seed.Key)
}

// deleted reports an EtcdCluster that was deleted. Without a reason it is the one that
// is replaced.
func (n *notices) deleted(cluster *unstructured.Unstructured, why string) {
	if why == "" {
		n.Normal("Cluster Stopped", "Deleted the old EtcdCluster; what it was is on record in status.cluster")
		if text := mayRepeat(cluster, n.Object.Status.Backup, bumpOf(n.Object)); text != "" {
			n.Warning("Revisions May Repeat", "%s", text)
		}
		return
	}
	n.Warning("Cluster Deleted", "Deleted EtcdCluster %s (UID %s), to recreate it: %s", cluster.GetName(), cluster.GetUID(), why)
}

func (n *notices) lost(pods []corev1.Pod) {
	for _, p := range pods {
		n.Warning("Pod May Still Run", "Pod %s of the old cluster was deleted, and node %s has not reported that it has ended: it may still run there, and serve old data to clients that ask its address; it can't join the new cluster",
			p.Name, p.Spec.NodeName)
	}
}

func (n *notices) late(text string) { n.Warning("Edit Too Late", "%s", text) }

func (n *notices) untidy(err error) {
	n.Warning("Not Tidied", "The cluster is back; what the restore no longer needs could not be removed: %v", err)
}

// restored informs those who look at the EtcdCluster.
func (n *notices) restored(cluster *unstructured.Unstructured) {
	n.About(cluster, corev1.EventTypeNormal, "Restored", "The cluster has all its members, with the data of %s (EtcdRestore %s)", n.Object.Status.Backup.Key, n.Object.Name)
}
