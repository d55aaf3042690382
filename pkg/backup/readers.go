// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

const (
	// readersLook is for how long an answer counts who reads. A restore that begins meanwhile
	// does not find what is deleted, and chooses again: it has touched nothing yet.
	readersLook = time.Second
	// choosingLimit is how long a restore may look for a backup until it gives up.
	choosingLimit = 24 * time.Hour
)

// readers are the EtcdRestores that read below the path. A restore first reads the backup as a
// whole. Then it replaces the cluster, and its first member reads the backup once more. What it
// has chosen must be there until then: the old cluster is gone.
type readers struct {
	looked time.Time
	// choosing is one that has not chosen its backup yet; "": there is none.
	choosing string
	// chosen are the backups that are read, by their places, each with its reader.
	chosen map[string]string
	// from are the revisions that logs are read from, by the IDs of the clusters.
	from map[string]int64
}

// look asks again if the last answer is old.
func (t *tidying) look(ctx context.Context) error {
	now := t.cfg.Clock.Now()
	if t.readers.chosen != nil && now.Sub(t.readers.looked) < readersLook {
		return nil
	}
	list, err := t.restores(ctx)
	if err != nil {
		return err
	}
	t.readers = readers{looked: now, chosen: map[string]string{}, from: map[string]int64{}}
	for i := range list {
		t.readers.add(&list[i], t.obj, now)
	}
	return nil
}

// restores are the EtcdRestores that this operator may see.
func (t *tidying) restores(ctx context.Context) ([]api.EtcdRestore, error) {
	list, err := t.cfg.Etcd.EtcdV1beta2().EtcdRestores(t.cfg.Namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		t.log.WithError(err).Info("can't look for restores that read the backups: grant the right to list etcdrestores")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for restores that read the backups: %w", err)
	}
	return list.Items, nil
}

func (r *readers) add(restore *api.EtcdRestore, of *api.EtcdBackup, now time.Time) {
	st, path := &restore.Status, restore.Spec.Path()
	switch {
	case restore.Spec.BackupStorageType != of.Spec.StorageType || path != of.Spec.Path() && !strings.HasPrefix(path, backupobject.KeyPrefix(of.Spec.Path())):
		return
	case of.Spec.StorageType == api.BackupStorageTypeVolume && restore.Namespace != of.Namespace:
		return // each has its directory
	case st.Succeeded, st.Phase == api.RestorePhaseSucceeded, st.Phase == api.RestorePhaseFailed, st.Phase == api.RestorePhaseInvalid:
		return
	}
	name := restore.Namespace + "/" + restore.Name
	if st.Backup == nil {
		since := restore.CreationTimestamp.Time
		if st.StartDate != nil {
			since = st.StartDate.Time
		}
		// The test of a backup begins right after it, when old ones are deleted. It needs no old one.
		if !restore.IsTest() && now.Sub(since) < choosingLimit {
			r.choosing = name
		}
		return
	}
	r.chosen[st.Backup.Key] = name
	revision, _, ours := backupobject.ParseKey(of.Spec.Path(), st.Backup.Key)
	if known, there := r.from[st.Backup.ClusterID]; ours && (!there || revision < known) {
		r.from[st.Backup.ClusterID] = revision
	}
}

// reads returns which EtcdRestore may read a backup; "": none.
func (r *readers) reads(key string) string {
	if r.choosing != "" {
		return r.choosing
	}
	return r.chosen[key]
}

// follows reports whether an EtcdRestore may read a segment.
func (r *readers) follows(k changelog.Key) bool {
	from, there := r.from[fmt.Sprintf("%016x", k.Cluster)]
	return r.choosing != "" || there && k.Last >= from
}
