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

	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// Keys of the metadata that an object carries.
const (
	metaRevision   = "etcd-revision"
	metaVersion    = "etcd-version"
	metaEndpoint   = "etcd-endpoint"
	metaUID        = "backup-uid"  // of the EtcdBackup
	metaName       = "backup-name" // its namespace and name
	metaGeneration = "backup-generation"
	metaSpec       = "backup-spec"      // digest of its spec
	metaScheduled  = "backup-scheduled" // the window, on a schedule
	metaStarted    = "backup-started"
	metaSHA256     = "sha256"
	metaSize       = "size"
	metaDuration   = "duration"
	// metaLinearizable is "false" where etcd had no quorum, else "true".
	metaLinearizable = "etcd-linearizable"
)

func (a *attempt) metadata(snap *Snapshot) map[string]string {
	m := map[string]string{
		metaSize:       strconv.FormatInt(snap.Size, 10), // as etcd announces it, and is held to
		metaRevision:   strconv.FormatInt(snap.Revision, 10),
		metaVersion:    snap.Version,
		metaEndpoint:   snap.Endpoint,
		metaUID:        string(a.obj.UID),
		metaName:       a.obj.Namespace + "/" + a.obj.Name,
		metaGeneration: strconv.FormatInt(a.obj.Generation, 10),
		metaSpec:       digestOf(&a.obj.Spec),
		metaStarted:    a.begun.UTC().Format(time.RFC3339),
	}
	m[metaLinearizable] = strconv.FormatBool(snap.Linearizable)
	if !a.window.IsZero() {
		m[metaScheduled] = a.window.UTC().Format(time.RFC3339)
	}
	return m
}

// find looks for a backup that an attempt before has stored, of this window and
// by this spec, though the status does not tell: the operator died right after, or
// the store's answer was lost. It returns nil where there is none.
func (a *attempt) find(ctx context.Context, place *location.Location) (*made, error) {
	if a.window.IsZero() {
		return a.stored(ctx, place, place.Key)
	}
	for object, err := range place.List(ctx, periodicPrefix(place.Key)) {
		if err != nil {
			return nil, advised(fmt.Errorf("look for what was stored before: %w", err), &a.obj.Spec)
		}
		if _, begun, ours := parsePeriodicKey(place.Key, object.Key); !ours || begun.Before(a.since.Truncate(time.Second)) {
			continue
		}
		if m, err := a.stored(ctx, place, object.Key); m != nil || err != nil {
			return m, err
		}
	}
	return nil, nil
}

// stored is the object of a key, if it is the backup that is to be made.
func (a *attempt) stored(ctx context.Context, place *location.Location, key string) (*made, error) {
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
	for _, name := range []string{metaUID, metaSpec, metaScheduled} {
		if object.Metadata[name] != a.metadata(&Snapshot{})[name] {
			return nil, nil
		}
	}
	// One of the same spec may have been made before that was edited to and fro.
	if started, err := time.Parse(time.RFC3339, object.Metadata[metaStarted]); err != nil || started.Before(a.since.Truncate(time.Second)) {
		return nil, nil
	}
	sum, summed := object.Metadata[metaSHA256]
	if object.Metadata[metaSize] != strconv.FormatInt(object.Size, 10) || summed && len(sum) != hex.EncodedLen(sha256.Size) {
		a.log.WithField("key", place.Path(key)).Warn("an attempt before has left something that is not whole")
		return nil, nil
	}
	m := &made{
		place: place.Path(key), key: key, found: true,
		version: object.Metadata[metaVersion], endpoint: object.Metadata[metaEndpoint],
		size: object.Size, sha256: object.Metadata[metaSHA256], complete: object.Modified,
	}
	m.uncertain = uncertain(object.Metadata)
	// What can't be read was not written by us, and is left out.
	m.revision, _ = strconv.ParseInt(object.Metadata[metaRevision], 10, 64)
	m.duration, _ = time.ParseDuration(object.Metadata[metaDuration])
	return m, nil
}

// uncertain tells of an object's metadata whether writes may be missing in it, since
// etcd had no quorum when it was taken.
func uncertain(metadata map[string]string) bool { return metadata[metaLinearizable] == "false" }
