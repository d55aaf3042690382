// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	place    *location.Location
	progress func(key string, read, size int64)
}

// exact is the object of a key.
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

// absent says of an object that is not there what to do. The path may be that of a
// schedule, whose keys have an ending, or the bucket another one: not all stores tell
// that of a single object.
func (f finder) absent(ctx context.Context, err error) error {
	for object, listErr := range f.place.List(ctx, backupobject.KeyPrefix(f.place.Key)) {
		if errors.Is(listErr, store.ErrNoBucket) {
			return fmt.Errorf("look for the backup: %w", listErr)
		}
		if listErr != nil {
			break // nor may all credentials list
		}
		if _, _, ours := backupobject.ParseKey(f.place.Key, object.Key); ours {
			return fmt.Errorf("look for the backup: %w: but backups of a schedule are below this path, such as %s: name one of them as the path, or set spec.pick to Newest", err, f.place.Path(object.Key))
		}
	}
	return fmt.Errorf("look for the backup: %w: compare the path with what the tools of your store list, or with status.key of the EtcdBackup", err)
}

// search is one for the newest good backup.
type search struct {
	finder
	queue   queue
	objects map[string]store.Object // that were asked about
	tried   map[string]bool         // keys that were read
	// passed are the backups that were passed over, and why; damaged is how many of
	// them are damaged.
	passed  []string
	damaged int
	found   *Verified
}

// newest is the newest good one of those on the schedule of the location.
func (f finder) newest(ctx context.Context, before time.Time) (Verified, []string, error) {
	candidates, seen, err := f.list(ctx)
	if err != nil {
		return Verified{}, nil, err
	}
	ordered := newestFirst(candidates, before)
	if len(ordered) == 0 {
		return Verified{}, nil, f.none(before, seen, len(candidates))
	}
	s := search{finder: f, objects: map[string]store.Object{}, tried: map[string]bool{}}
	for _, c := range ordered {
		object, err := f.place.Stat(ctx, c.key)
		if errors.Is(err, store.ErrNotFound) {
			s.pass(c, errors.New("it was deleted meanwhile"))
			continue
		}
		if err != nil {
			return Verified{}, s.passed, fmt.Errorf("look at a backup: %w", err)
		}
		s.objects[c.key] = object
		if err := s.try(ctx, s.queue.add(c, backupobject.Uncertain(object.Metadata))); err != nil {
			return Verified{}, s.passed, err
		}
		if s.found != nil {
			break
		}
	}
	if s.found == nil {
		if err := s.try(ctx, s.queue.rest()); err != nil {
			return Verified{}, s.passed, err
		}
	}
	switch {
	case s.found == nil && s.damaged > 0:
		return Verified{}, s.passed, damaged{f.place.Path(f.pattern()), fmt.Errorf("none of the %d backups that were tried is good; the newest: %s", len(s.passed), s.passed[0])}
	case s.found == nil:
		return Verified{}, s.passed, fmt.Errorf("%w: all of the %d backups that were there have been deleted meanwhile", store.ErrNotFound, len(s.passed))
	}
	for _, w := range s.queue.waiting {
		s.pass(w, fmt.Errorf("it was taken without a quorum, at revision %d, and an older one holds more", w.revision))
	}
	if more, ok := s.holdsMore(ordered); ok {
		s.passed = slices.Insert(s.passed, 0, fmt.Sprintf("%s: it is older, and its revision is %d, where that of %s is %d: if the cluster was lost and made anew in between, and not restored, what was lost is in there",
			f.place.Path(more.key), more.revision, s.found.Path, s.found.EtcdRevision))
	}
	return *s.found, s.passed, nil
}

// holdsMore is the newest of the backups with the highest revision, if that is older
// than the chosen backup, was not tried, and its revision is a higher one. The schedule
// of a cluster goes on when it was lost and made anew, empty: the newest backup is then
// not what somebody looks for who restores it. After a restore revisions are lower as
// well, so that it is but told.
func (s *search) holdsMore(ordered []candidate) (candidate, bool) {
	most := slices.MaxFunc(ordered, func(a, b candidate) int { return cmp.Compare(a.revision, b.revision) })
	return most, most.revision > s.found.EtcdRevision && !s.tried[most.key] && most.time().Before(s.found.Taken)
}

// try reads some, in their order, until one is good.
func (s *search) try(ctx context.Context, candidates []candidate) error {
	for _, c := range candidates {
		v, err := s.verify(ctx, s.objects[c.key])
		delete(s.objects, c.key)
		s.tried[c.key] = true
		switch {
		case err == nil:
			s.found = &v
			return nil
		// Which one is the newest good is not known while one can't be read.
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, store.ErrNotFound):
			return err
		case errors.Is(err, ErrDamaged):
			s.damaged++
		}
		s.pass(c, err)
	}
	return nil
}

func (s *search) pass(c candidate, why error) {
	text := why.Error()
	if path := s.place.Path(c.key); !strings.Contains(text, path) {
		text = path + ": " + text
	}
	s.passed = append(s.passed, text)
}

// list are the backups on the schedule, and how many objects begin like them.
func (f finder) list(ctx context.Context) (candidates []candidate, seen int, err error) {
	for object, err := range f.place.List(ctx, backupobject.KeyPrefix(f.place.Key)) {
		if err != nil {
			return nil, 0, fmt.Errorf("look for backups: %w", err)
		}
		seen++
		if revision, begun, ours := backupobject.ParseKey(f.place.Key, object.Key); ours {
			candidates = append(candidates, candidate{object.Key, revision, begun, object.Modified})
		}
	}
	return candidates, seen, nil
}

// pattern is what the keys look like, for people.
func (f finder) pattern() string {
	return backupobject.KeyPrefix(f.place.Key) + "<revision>_<YYYY-MM-DD-HH:MM:SS>"
}

// none says that there is no backup to try.
func (f finder) none(before time.Time, seen, named int) error {
	looked := f.place.Path(f.pattern())
	if !before.IsZero() {
		looked += " begun at " + before.UTC().Format(time.RFC3339) + " or before"
	}
	var there string
	switch {
	case seen == 0:
		there = "no object's key begins so"
	case named == 0:
		there = fmt.Sprintf("of %d objects whose keys begin so none is named like a backup", seen)
	default:
		there = fmt.Sprintf("of %d objects whose keys begin so %d are named like backups, and all of these were begun later", seen, named)
	}
	return fmt.Errorf("%w: looked for %s: %s; the path must be that of the EtcdBackup that made them", store.ErrNotFound, looked, there)
}

// about is what the store tells of an object.
func (f finder) about(object store.Object) Verified {
	v := Verified{Key: object.Key, Path: f.place.Path(object.Key), Size: object.Size, Modified: object.Modified, Uncertain: backupobject.Uncertain(object.Metadata)}
	// What is not as we write it was not written by us, and counts for nothing.
	if version, err := etcd.ParseVersion(object.Metadata[backupobject.MetaVersion]); err == nil {
		v.EtcdVersion = version.String()
	}
	if revision, err := strconv.ParseInt(object.Metadata[backupobject.MetaRevision], 10, 64); err == nil && revision > 0 {
		v.EtcdRevision = revision
	}
	if started, err := time.Parse(time.RFC3339, object.Metadata[backupobject.MetaStarted]); err == nil {
		v.Taken = started
	}
	// The key of one on a schedule tells the same, also where the metadata are lost.
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
