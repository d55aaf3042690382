// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func (a *attempt) metadata(snap *Snapshot) map[string]string {
	m := map[string]string{
		backupobject.MetaSize:       strconv.FormatInt(snap.Size, 10), // as etcd announces it, and is held to
		backupobject.MetaRevision:   strconv.FormatInt(snap.Revision, 10),
		backupobject.MetaVersion:    snap.Version,
		backupobject.MetaEndpoint:   snap.Endpoint,
		backupobject.MetaUID:        string(a.obj.UID),
		backupobject.MetaName:       a.obj.Namespace + "/" + a.obj.Name,
		backupobject.MetaGeneration: strconv.FormatInt(a.obj.Generation, 10),
		backupobject.MetaSpec:       digestOf(&a.obj.Spec),
		backupobject.MetaStarted:    a.begun.UTC().Format(time.RFC3339),
	}
	m[backupobject.MetaLinearizable] = strconv.FormatBool(snap.Linearizable)
	if snap.ClusterID != 0 {
		m[backupobject.MetaCluster] = fmt.Sprintf("%016x", snap.ClusterID)
	}
	if snap.RaftApplied != 0 {
		m[backupobject.MetaApplied] = strconv.FormatUint(snap.RaftApplied, 10)
	}
	if !snap.Linearizable {
		m[backupobject.MetaUnapplied] = strconv.FormatUint(snap.Unapplied, 10)
	}
	if !a.window.IsZero() {
		m[backupobject.MetaScheduled] = a.window.UTC().Format(time.RFC3339)
	}
	if a.base {
		m[backupobject.MetaBase] = "true"
	}
	return m
}

// find looks for a backup that an attempt before has stored, of this window and
// by this spec, though the status does not report: the operator died right after, or
// the store's answer was lost. It returns nil where there is none.
func (a *attempt) find(ctx context.Context, place *location.Location) (*storedBackup, error) {
	if a.window.IsZero() {
		return a.stored(ctx, place, place.Key)
	}
	for object, err := range place.List(ctx, backupobject.KeyPrefix(place.Key)) {
		if err != nil {
			return nil, advised(fmt.Errorf("look for what was stored before: %w", err), &a.obj.Spec)
		}
		if _, begun, ours := backupobject.ParseKey(place.Key, object.Key); !ours || begun.Before(a.since.Truncate(time.Second)) {
			continue
		}
		if m, err := a.stored(ctx, place, object.Key); m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}

// stored is the object of a key, if it is the backup that is to be made.
func (a *attempt) stored(ctx context.Context, place *location.Location, key string) (*storedBackup, error) {
	if a.wrong[key] {
		return nil, nil
	}
	object, err := place.Stat(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, advised(fmt.Errorf("look for what was stored before: %w", err), &a.obj.Spec)
	}
	want := []string{backupobject.MetaUID, backupobject.MetaSpec, backupobject.MetaBase}
	if !a.base { // its time is that of each attempt
		want = append(want, backupobject.MetaScheduled)
	}
	for _, name := range want {
		if object.Metadata[name] != a.metadata(&Snapshot{})[name] {
			return nil, nil
		}
	}
	// One of the same spec may have been made before that was edited to and fro.
	started, err := time.Parse(time.RFC3339, object.Metadata[backupobject.MetaStarted])
	if err != nil || started.Before(a.since.Truncate(time.Second)) {
		return nil, nil
	}
	if !whole(object) {
		a.log.WithField("key", place.Path(key)).Warn("an attempt before has left something that is not whole")
		return nil, nil
	}
	m := &storedBackup{
		place: place.Path(key), key: key, found: true, begun: started,
		version: object.Metadata[backupobject.MetaVersion], endpoint: object.Metadata[backupobject.MetaEndpoint],
		cluster: object.Metadata[backupobject.MetaCluster],
		size:    object.Size, sha256: object.Metadata[backupobject.MetaSHA256], complete: object.Modified,
	}
	m.uncertain, m.base = backupobject.Uncertain(object.Metadata), a.base
	// What can't be read was not written by us, and is left out.
	m.revision, _ = strconv.ParseInt(object.Metadata[backupobject.MetaRevision], 10, 64)
	m.applied, _ = strconv.ParseInt(object.Metadata[backupobject.MetaApplied], 10, 64)
	m.unapplied = unappliedBy(object.Metadata)
	m.duration, _ = time.ParseDuration(object.Metadata[backupobject.MetaDuration])
	return m, nil
}

// whole reports whether an object has all that its metadata announce.
func whole(object store.Object) bool {
	sum, summed := object.Metadata[backupobject.MetaSHA256]
	return object.Metadata[backupobject.MetaSize] == strconv.FormatInt(object.Size, 10) && (!summed || len(sum) == hex.EncodedLen(sha256.Size))
}

// unappliedBy is what MetaUnapplied says; nil: nothing.
func unappliedBy(metadata map[string]string) *int64 {
	n, err := strconv.ParseInt(metadata[backupobject.MetaUnapplied], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
