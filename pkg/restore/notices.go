// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// failurePause passes between two events about attempts that fail, after the first of
// a row, even where their reasons differ: addresses and ports in them do.
const failurePause = 10 * time.Minute

// notices tells people what becomes of a restore, in events and in the log.
type notices struct {
	recorder record.EventRecorder
	log      *logrus.Entry
	obj      *api.EtcdRestore

	failure   string // that was told last
	failureAt time.Time
}

func (n *notices) tell(about runtime.Object, kind, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	// The API server keeps at most 1024 bytes of an event's message.
	n.recorder.Event(about, kind, reason, shorten(message, 1000))
	n.log.WithField("event", reason).Info(message)
}

func (n *notices) normal(reason, format string, args ...any) {
	n.tell(n.obj, corev1.EventTypeNormal, reason, format, args...)
}

func (n *notices) warning(reason, format string, args ...any) {
	n.tell(n.obj, corev1.EventTypeWarning, reason, format, args...)
}

// changed tells of what is on record now.
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
		n.warning("Restore Invalid", "%s", st.Reason)
	case api.RestorePhaseFailed:
		n.warning("Restore Failed", "%s", st.Reason)
	case api.RestorePhaseRetrying:
		n.failed(st, now)
	case api.RestorePhaseGrowing:
		n.normal("First Member Serves", "The first member serves the data of %s; the others join it", st.Backup.Key)
	case api.RestorePhaseSucceeded:
		if before.Backup != nil {
			n.normal("Restore Succeeded", "The cluster is back with all its members, and the data of %s", before.Backup.Key)
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
	text := fmt.Sprintf("Read all of %s (%s): it is whole", b.Key, bytesText(b.Size))
	if b.EtcdVersion != "" {
		text += fmt.Sprintf(", revision %d of etcd %s", b.EtcdRevision, b.EtcdVersion)
	}
	if b.Uncertain {
		text += "; it was taken while etcd had no quorum: writes may be missing in it"
	}
	n.normal("Backup Verified", "%s; %s", text, then)
}

// failed tells of the first failure in a row, and of others now and then.
func (n *notices) failed(st *api.RestoreStatus, now time.Time) {
	pause := now.Sub(n.failureAt)
	if n.failure != "" && (st.Reason == n.failure || pause >= 0 && pause < failurePause) {
		n.log.WithField("failures", st.Failures).Warn("the restore can't begin: " + st.Reason)
		return
	}
	n.failure, n.failureAt = st.Reason, now
	n.warning("Restore Failed", "%s", st.Reason)
}

func (n *notices) created(seed api.SeedBackup) {
	n.normal("Cluster Created", "Made the EtcdCluster, to begin with %s", seed.Key)
}

// deleted tells of an EtcdCluster that was deleted. Without a reason it is the one that
// is replaced.
func (n *notices) deleted(cluster *unstructured.Unstructured, why string) {
	if why == "" {
		n.normal("Cluster Stopped", "Deleted the old EtcdCluster; what it was is on record in status.cluster")
		if text := mayRepeat(cluster, n.obj.Status.Backup, n.obj.Spec.BumpRevision); text != "" {
			n.warning("Revisions May Repeat", "%s", text)
		}
		return
	}
	n.warning("Cluster Deleted", "Deleted EtcdCluster %s (UID %s), to make it anew: %s", cluster.GetName(), cluster.GetUID(), why)
}

func (n *notices) lost(pods []corev1.Pod) {
	for _, p := range pods {
		n.warning("Pod May Still Run", "Pod %s of the old cluster was deleted, and node %s has not told that it has ended: it may still run there, and serve old data to who asks its address; it can't join the new cluster",
			p.Name, p.Spec.NodeName)
	}
}

func (n *notices) untidy(err error) {
	n.warning("Not Tidied", "The cluster is back; what the restore no longer needs could not be removed: %v", err)
}

// restored tells those who look at the EtcdCluster.
func (n *notices) restored(cluster *unstructured.Unstructured) {
	n.tell(cluster, corev1.EventTypeNormal, "Restored", "The cluster has all its members, with the data of %s (EtcdRestore %s)", n.obj.Status.Backup.Key, n.obj.Name)
}
