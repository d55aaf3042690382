// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backups"
)

// Bump is by how much a recovery raises the revision. Clients may have watched revisions that
// the cluster continues without. It covers a week of 1,600 writes a second.
const Bump = 1_000_000_000

// SurvivorBackup returns the EtcdBackup that takes the data of a survivor into the
// store of another EtcdBackup. Its name depends on that one and on the time alone.
func SurvivorBackup(like *api.EtcdBackup, member string, begun time.Time) (*api.EtcdBackup, error) {
	once, err := backups.Once(like, begun)
	if err != nil {
		return nil, err
	}
	if scope, scoped := like.Annotations[api.ScopeAnnotation]; scoped {
		metav1.SetMetaDataAnnotation(&once.ObjectMeta, api.ScopeAnnotation, scope)
	}
	metav1.SetMetaDataAnnotation(&once.ObjectMeta, api.SurvivorAnnotation, member)
	return once, nil
}

// Restore returns the EtcdRestore that continues a cluster from the backup in the status of an
// EtcdBackup, and from no other one: an older one would lose more than the choice says. revision is
// set if only the log after the backup holds it; the restore then fails if it cannot reach it.
func Restore(cluster *api.EtcdCluster, from *api.EtcdBackup, revision, bump int64, begun string) (*api.EtcdRestore, error) {
	pick := backups.Pick{Key: from.Status.Key}
	switch {
	case revision > 0:
		pick = backups.Pick{Newest: true}
	case pick.Key == "":
		return nil, fmt.Errorf("EtcdBackup %s has no backup any more", from.Name)
	}
	restore, err := backups.Restore(cluster.Name, from, pick)
	if err != nil {
		return nil, err
	}
	restore.Namespace = cluster.Namespace
	restore.Spec.Revision, restore.Spec.BumpRevision = revision, bump
	if rec := cluster.Status.Record; rec != nil && revision > 0 {
		// Another cluster may have stored its backups below the same path, and has the revision too.
		restore.Spec.ClusterID = rec.ClusterID
	}
	restore.Spec.OldVolumes = api.OldVolumesKeep
	metav1.SetMetaDataAnnotation(&restore.ObjectMeta, api.RecoveryAnnotation, begun)
	if scope, scoped := cluster.Annotations[api.ScopeAnnotation]; scoped {
		metav1.SetMetaDataAnnotation(&restore.ObjectMeta, api.ScopeAnnotation, scope)
	}
	return restore, nil
}

// BumpFor is by how much a restore of a revision raises it, so that it begins above all
// revisions that clients may know. restored is what the cluster itself began from.
func BumpFor(revision, last int64, restored *api.RestoredFrom) int64 {
	if restored != nil && restored.BumpRevision > 0 {
		begun := restored.EtcdRevision
		if restored.Revision > 0 {
			begun = restored.Revision
		}
		last = max(last, begun+restored.BumpRevision)
	}
	return min(Bump+max(0, last-revision), api.MaxBumpRevision)
}
