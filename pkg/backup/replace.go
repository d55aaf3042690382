// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// errReplace keeps a backup from being replaced.
var errReplace = errors.New("it is not replaced")

// mayReplace reports whether what stands under the key of a backup that is made once
// may be replaced by a snapshot of a revision. Where a cluster was lost and recreated,
// the only valuable backup would give way to one of an empty cluster: by an EtcdBackup that was
// recreated with it, or by an edit of the one that had stored it. Only what a failed attempt of
// its own has left is no backup.
//
// What carries no revision was made by v0.9.4, or by hand, and is replaced as
// v0.9.4 did. So is what the credentials do not allow to look at. An operator that has no
// credentials at the moment knows nothing.
func (a *attempt) mayReplace(ctx context.Context, place *location.Location, revision int64) error {
	if a.obj.Annotations[api.BackupReplaceAnnotation] == "true" {
		return nil
	}
	there, err := place.Stat(ctx, place.Key)
	switch {
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDenied):
		return nil
	case err != nil:
		return advised(fmt.Errorf("look for what would be replaced: %w", err), &a.obj.Spec)
	}
	has, err := strconv.ParseInt(there.Metadata[backupobject.MetaRevision], 10, 64)
	uid := there.Metadata[backupobject.MetaUID]
	own := uid == string(a.obj.UID)
	if err != nil || uid == "" || has <= revision || own && (a.wrong[place.Key] || !whole(there)) {
		return nil
	}
	by := "another EtcdBackup"
	if own {
		by = "this EtcdBackup"
	}
	return fmt.Errorf("%w: %s holds a backup of revision %d, stored %s by %s, %s, and etcd is at revision %d now; name another path, move or delete that object, or set the annotation %s: \"true\" on this EtcdBackup",
		errReplace, place.Path(place.Key), has, there.Modified.UTC().Format(time.RFC3339), by, there.Metadata[backupobject.MetaName], revision, api.BackupReplaceAnnotation)
}
