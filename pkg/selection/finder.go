// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// finder looks for a backup.
type finder struct {
	place *location.Location
	// revision that the backup must hold; 0: any.
	revision int64
	// log is what may follow a backup; nil: nothing. cluster is the ID of that which the backup
	// must come from; 0: any.
	log     *logs
	cluster uint64
	// rival names another cluster whose log contains the moment; "": there is none.
	rival string
	// moment is the one that is asked for; zero: none is. Users, roles and leases are those of the
	// backup, so one from before it goes first.
	moment   time.Time
	progress func(key string, read, size int64)
}

// exact verifies the object of a key.
func (f finder) exact(ctx context.Context, key string) (Verified, error) {
	object, err := f.place.Stat(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Verified{}, f.absent(ctx, err)
	case err != nil:
		return Verified{}, fmt.Errorf("look for the backup: %w", err)
	}
	return f.verify(ctx, object)
}

// absent adds to the error for an absent object what to do. The path may be that of a
// schedule, whose keys have a suffix. The bucket may be wrong: not all stores report that for
// a single object.
func (f finder) absent(ctx context.Context, err error) error {
	for object, listErr := range objectsBelow(ctx, f.place, backupobject.KeyPrefix(f.place.Key)) {
		if errors.Is(listErr, store.ErrNoBucket) {
			return fmt.Errorf("look for the backup: %w", listErr)
		}
		if listErr != nil {
			break // or the credentials do not allow lists
		}
		if _, _, ours := backupobject.ParseKey(f.place.Key, object.Key); ours {
			return fmt.Errorf("look for the backup: %w: but backups of a schedule are below this path, such as %s: name one of them as the path, or set spec.pick to Newest", err, f.place.Path(object.Key))
		}
	}
	return fmt.Errorf("look for the backup: %w: compare the path with what the tools of your store list, or with status.key of the EtcdBackup", err)
}

// objectsBelow yields the objects whose keys begin with a prefix, and counts each one as progress.
func objectsBelow(ctx context.Context, place *location.Location, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for object, err := range place.List(ctx, prefix) {
			store.Moved(ctx, 1)
			if !yield(object, err) {
				return
			}
		}
	}
}

// about returns what the store knows of an object.
func (f finder) about(object store.Object) Verified {
	v := Verified{Key: object.Key, Path: f.place.Path(object.Key), Size: object.Size, Modified: object.Modified, Uncertain: backupobject.Uncertain(object.Metadata)}
	// A version that does not parse is not the operator's, and is ignored.
	if version, err := etcd.ParseVersion(object.Metadata[backupobject.MetaVersion]); err == nil {
		v.EtcdVersion = version.String()
	}
	if revision, err := strconv.ParseInt(object.Metadata[backupobject.MetaRevision], 10, 64); err == nil && revision > 0 {
		v.EtcdRevision = revision
	}
	if started, err := time.Parse(time.RFC3339, object.Metadata[backupobject.MetaStarted]); err == nil {
		v.Taken = started
	}
	// The key of a scheduled backup has the same facts, even if the metadata are lost.
	if at := strings.LastIndex(object.Key, backupobject.KeyPrefix("")); at >= 0 {
		if revision, begun, ours := backupobject.ParseKey(object.Key[:at], object.Key); ours {
			if v.EtcdRevision == 0 {
				v.EtcdRevision = revision
			}
			if v.Taken.IsZero() {
				v.Taken = begun
			}
		}
	}
	return v
}
