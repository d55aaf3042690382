// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// again dates the edits by which restores choose again.
	again choices
	// from are the revisions that logs are read from, by the IDs of the clusters.
	from map[string]int64
}

// choice is what an edit asks of a restore that has begun.
type choice struct {
	restore    types.UID
	generation int64
}

// choices are when they were first seen. An edit of the spec has no date.
type choices map[choice]time.Time

// since is when a choice was first seen.
func (c choices) since(restore *api.EtcdRestore, now time.Time) time.Time {
	key := choice{restore.UID, edits(restore)}
	if _, known := c[key]; !known {
		c[key] = now
	}
	return c[key]
}

// forget leaves out the restores that are gone.
func (c choices) forget(list []api.EtcdRestore) {
	maps.DeleteFunc(c, func(key choice, _ time.Time) bool {
		return !slices.ContainsFunc(list, func(r api.EtcdRestore) bool { return r.UID == key.restore })
	})
}

// edits counts the edits of the spec. The generation counts the deletion too.
func edits(restore *api.EtcdRestore) int64 {
	if restore.DeletionTimestamp != nil {
		return restore.Generation - 1
	}
	return restore.Generation
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
	t.again.forget(list)
	t.readers = readers{looked: now, chosen: map[string]string{}, again: t.again, from: map[string]int64{}}
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
	st := &restore.Status
	seen := st.ObservedGeneration >= edits(restore)
	switch {
	case of.Spec.StorageType == api.BackupStorageTypeVolume && restore.Namespace != of.Namespace:
		return // each has its directory
	case st.Succeeded, st.Phase == api.RestorePhaseSucceeded:
		return
	case seen && (st.Phase == api.RestorePhaseFailed || st.Phase == api.RestorePhaseInvalid):
		return
	}
	here := looksBelow(&restore.Spec, &of.Spec)
	again := !seen && st.Phase != api.RestorePhaseNone
	if st.Backup != nil {
		again = st.Backup.Generation < edits(restore)
	}
	if st.Backup != nil && (here || again) { // an edit may have led it elsewhere since
		r.choose(restore, of)
	}
	if !here || st.Backup != nil && !again {
		return
	}
	var since time.Time
	switch {
	case again:
		since = r.again.since(restore, now)
	case st.StartDate != nil:
		since = st.StartDate.Time
	default:
		since = restore.WrittenAt() // as the restore counts
	}
	// The test of a backup begins right after it, when old ones are deleted. It needs no old one.
	if !restore.IsTest() && now.Sub(since) < choosingLimit {
		r.choosing = readerName(restore)
	}
}

// looksBelow reports whether the spec of a restore names backups of an EtcdBackup.
func looksBelow(restore *api.RestoreSpec, of *api.BackupSpec) bool {
	path := restore.Path()
	return restore.BackupStorageType == of.StorageType && (path == of.Path() || strings.HasPrefix(path, backupobject.KeyPrefix(of.Path())))
}

// choose notes what a restore has chosen.
func (r *readers) choose(restore *api.EtcdRestore, of *api.EtcdBackup) {
	b := restore.Status.Backup
	r.chosen[b.Key] = readerName(restore)
	revision, _, ours := backupobject.ParseKey(of.Spec.Path(), b.Key)
	if known, there := r.from[b.ClusterID]; ours && (!there || revision < known) {
		r.from[b.ClusterID] = revision
	}
}

func readerName(restore *api.EtcdRestore) string { return restore.Namespace + "/" + restore.Name }

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
