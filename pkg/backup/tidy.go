// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	// sweepAge is how old an upload must be at the least to be taken for one that
	// was cut off, and is nobody's any more: another program may write below the same
	// path.
	sweepAge = 24 * time.Hour
	// tidyLimit bounds the tidying after a backup, and sweepLimit the sweep alone.
	tidyLimit  = 5 * time.Minute
	sweepLimit = 10 * time.Second
	// trimLimit bounds the tidying with a log: a busy one gets 34,560 segments a day, and two
	// requests delete each. An attempt that is due, an edit and the operator's end cut it short.
	trimLimit = 4 * time.Hour
	// tidyPatience is for how long an attempt that is due waits for tidying where the
	// one before was cut short.
	tidyPatience = 30 * time.Second
	// listLag is for how long the list of a store may not show a backup.
	listLag = time.Hour
	// deletionGrace is for how long a deletion that has begun may continue after the tidying was stopped. The
	// store may carry out a request that was cut off, and the status and the events would not say so.
	deletionGrace = 5 * time.Second
)

// origin is what is known of where an object comes from.
type origin struct {
	mine      bool // this EtcdBackup made it
	uncertain bool
	base      bool   // made outside the schedule, for the log of changes
	cluster   string // its ID; "": unknown
}

// backup is what the retention knows of the backup under a key.
func (from origin) backup(key string, revision int64, begun, modified time.Time) stored {
	return stored{key: key, revision: revision, begun: begun, modified: modified, uncertain: from.uncertain, base: from.base, cluster: from.cluster}
}

// tidying puts a store in order after an attempt: what cut-off uploads have left is
// removed, and after a backup on a schedule those that are no longer kept. In a full store, those
// that are too many go also after a failure: no backup would ever succeed there, whatever an edit says.
type tidying struct {
	cfg  *Config
	log  *logrus.Entry
	obj  *api.EtcdBackup // nobody changes it
	last string          // key of the backup that was made; "": none
	// full is the place of the last backup on record, if the attempt has failed because the store had no room.
	full string
	// uncertain means that no quorum has confirmed the snapshot of this attempt.
	uncertain bool
	// owned holds what is known of keys: whether this EtcdBackup made them.
	owned   map[string]origin
	again   choices
	readers readers
}

// tidied is what came of it.
type tidied struct {
	// left is how many backups there are; -1: not known.
	left    int
	deleted []string // places
	owned   map[string]origin
	// trimmed is how many segments of the log were deleted.
	trimmed int
	// learned means that more is known of the objects than before.
	learned bool
	// err says why not all was deleted that should have been.
	err       error
	abandoned *abandonedWork // what hangs; nil: nothing
}

// progress reports whether the next tidying has less to do.
func (t *tidied) progress() bool { return t.learned || len(t.deleted) > 0 || t.trimmed > 0 }

func (t *tidying) limit() time.Duration {
	switch {
	case t.last == "" && t.full == "":
		return sweepLimit
	case t.obj.Spec.Continuous != nil && t.retains() && t.last != "":
		return trimLimit
	}
	return tidyLimit
}

func (t *tidying) run(ctx context.Context) tidied {
	result := tidied{left: -1, owned: t.owned}
	place, err := t.cfg.OpenLocation(ctx, t.obj.Namespace, &t.obj.Spec)
	switch {
	case err != nil && (t.last == "" || !t.retains()):
		t.log.WithError(err).Info("could not open the store to tidy it")
		return result // nothing was to be deleted
	case err != nil:
		result.err = fmt.Errorf("open the store (storageType %s): %w", t.obj.Spec.StorageType, err)
		return result
	}
	defer place.Close()
	if t.obj.Spec.Periodic() && (t.last != "" || t.full != "") {
		result = t.retain(ctx, place)
	}
	t.sweep(ctx, place)
	return result
}

// retains reports whether there is a rule for what is deleted.
func (t *tidying) retains() bool {
	newest, age := t.obj.Spec.Kept()
	return newest > 0 || age > 0
}

// retain deletes what is not to be kept any more, and counts what is.
func (t *tidying) retain(ctx context.Context, place *location.Location) tidied {
	result := tidied{left: -1}
	backups, owned, err := t.list(ctx, place)
	result.owned, result.learned = owned, len(owned) > len(t.owned)
	switch {
	case err != nil && !t.retains():
		t.log.WithError(err).Info("could not count the backups")
		return result
	case err != nil:
		result.err = fmt.Errorf("look for old backups: %w", err)
		return result
	}
	result.left = len(backups)
	newest, age := t.obj.Spec.Kept()
	last := t.last
	if last == "" {
		// Nothing was made that would take the place of the old ones: time alone deletes none.
		i := slices.IndexFunc(backups, func(b stored) bool { return place.Path(b.key) == t.full })
		if i < 0 {
			return result
		}
		age, last = 0, backups[i].key
	}
	var failures []error
	unanswered := 0 // failures that are not about one object
	for _, b := range (keeping{newest: newest, age: age, full: t.last == "", uncertain: t.uncertain}).surplus(backups, last, t.cfg.Clock.Now()) {
		if err := t.look(ctx); err != nil {
			failures = append(failures, err)
			unanswered++
			break
		}
		if reader := t.readers.reads(place.Path(b.key)); reader != "" {
			t.log.WithFields(logrus.Fields{"key": place.Path(b.key), "etcdrestore": reader}).Info("kept an old backup, because a restore may read it")
			continue
		}
		mine, err := t.deleteMine(ctx, place, b.key)
		if err != nil {
			failures = append(failures, err)
			if !refusesOne(err) {
				unanswered++
			}
			if unanswered == 3 {
				break
			}
			continue
		}
		result.left--
		if !mine {
			t.log.WithField("key", place.Path(b.key)).Warn("what stands under the key of an old backup is another EtcdBackup's now, and is left alone")
			owned[b.key] = origin{}
			continue
		}
		t.log.WithFields(logrus.Fields{"key": place.Path(b.key), "made": b.time().Format(time.RFC3339), "revision": b.revision}).Info("deleted an old backup")
		result.deleted = append(result.deleted, place.Path(b.key))
		delete(owned, b.key)
	}
	// The log goes by the backups that are left, also by those that are locked.
	if unanswered == 0 && t.last != "" && t.retains() && t.obj.Spec.Continuous != nil {
		if err := t.trimLog(ctx, place, &result); err != nil {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		result.err = fmt.Errorf("delete old backups: %w", advised(failures[0], &t.obj.Spec))
	}
	return result
}

// refusesOne reports whether the store has answered that it does not delete an object, for example
// because of a lock. It may delete others.
func refusesOne(err error) bool {
	return errors.Is(err, store.ErrDenied) || store.HasStatus(err, http.StatusConflict) || store.HasStatus(err, http.StatusPreconditionFailed)
}

// deleteMine deletes a backup if it is this EtcdBackup's. What is known of it may be
// old: it is asked for once more, as what is deleted does not come back.
func (t *tidying) deleteMine(ctx context.Context, place *location.Location, key string) (mine bool, err error) {
	switch stat, err := place.Stat(ctx, key); {
	case errors.Is(err, store.ErrNotFound):
		return true, nil // somebody was faster
	case err != nil:
		return false, err
	case stat.Metadata[backupobject.MetaUID] != string(t.obj.UID):
		return false, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	ctx, cancel := outlasting(ctx, deletionGrace)
	defer cancel()
	return true, place.Delete(ctx, key)
}

// outlasting returns a context that ends grace after ctx, or with cancel.
func outlasting(ctx context.Context, grace time.Duration) (_ context.Context, cancel func()) {
	after, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { end(context.Cause(ctx)) })
	})
	return after, func() { stop(); end(nil) }
}

// sweep removes what cut-off uploads have left. Where that is not possible it is
// tried again after the next attempt; nobody has to do anything.
func (t *tidying) sweep(ctx context.Context, place *location.Location) {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepLimit, errTimeUp)
	defer cancel()
	before := t.cfg.Clock.Now().Add(-max(sweepAge, 2*t.obj.Spec.Timeout()))
	below := func(prefix string, mine func(key string) bool) {
		switch n, err := place.Sweep(ctx, prefix, before, mine); {
		case err != nil:
			t.log.WithError(err).Info("could not look for what uploads have left that were cut off")
		case n > 0:
			t.log.WithField("uploads", n).Info("removed what uploads have left that were cut off")
		}
	}
	if !t.obj.Spec.Periodic() {
		below(place.Key, func(key string) bool { return key == place.Key })
		return
	}
	below(backupobject.KeyPrefix(place.Key), func(key string) bool {
		_, _, ours := backupobject.ParseKey(place.Key, key)
		return ours
	})
	if t.obj.Spec.Continuous != nil {
		below(changelog.KeyPrefix(place.Key), func(key string) bool {
			_, ours := changelog.ParseKey(place.Key, key)
			return ours
		})
	}
}

// list are the backups that this EtcdBackup made on its schedule, by their names
// and by what they carry: those of v0.9.4 carry nothing, and others may write below
// the same names.
func (t *tidying) list(ctx context.Context, place *location.Location) ([]stored, map[string]origin, error) {
	var backups []stored
	owned := map[string]origin{}
	for object, err := range listed(ctx, place, backupobject.KeyPrefix(place.Key)) {
		if err != nil {
			return nil, merged(t.owned, owned), err
		}
		revision, begun, ours := backupobject.ParseKey(place.Key, object.Key)
		if !ours {
			continue
		}
		from, known := t.owned[object.Key]
		if !known {
			// Each is asked once; its key is never given to another's again.
			stat, err := place.Stat(ctx, object.Key)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, merged(t.owned, owned), err
			}
			from = origin{
				mine: stat.Metadata[backupobject.MetaUID] == string(t.obj.UID), uncertain: backupobject.Uncertain(stat.Metadata),
				base: backupobject.Base(stat.Metadata), cluster: stat.Metadata[backupobject.MetaCluster],
			}
		}
		owned[object.Key] = from
		if from.mine {
			backups = append(backups, from.backup(object.Key, revision, begun, object.Modified))
		}
	}
	// The list may lag behind what this process has stored.
	since := t.cfg.Clock.Now().Add(-listLag)
	for key, from := range t.owned {
		revision, begun, ours := backupobject.ParseKey(place.Key, key)
		if _, there := owned[key]; there || !ours || !from.mine || key != t.last && begun.Before(since) {
			continue
		}
		stat, err := place.Stat(ctx, key)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, merged(t.owned, owned), err
		case err == nil:
			backups = append(backups, from.backup(key, revision, begun, stat.Modified))
		}
		if err == nil || key == t.last {
			owned[key] = from
		}
	}
	return backups, owned, nil
}

// merged is what is known of a list that was not read to its end.
func merged(before, now map[string]origin) map[string]origin {
	all := map[string]origin{}
	maps.Copy(all, before)
	maps.Copy(all, now)
	return all
}
