// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// search looks for the newest good backup.
type search struct {
	finder
	queue   queue
	objects map[string]store.Object // objects whose metadata were read
	tried   map[string]bool         // keys of backups that were read
	// passed are the reasons for skipped backups; damaged counts the damaged ones.
	passed  []string
	damaged int
	// damage is why the first of those is damaged.
	damage error
	// foreign counts the backups of other clusters.
	foreign int
	// nearest are the restorable revisions next to the one that is asked for.
	nearest nearest
	found   *Verified
}

// newest returns the newest good backup of the location's schedule.
func (f finder) newest(ctx context.Context, before time.Time) (Verified, []string, error) {
	candidates, seen, err := f.list(ctx)
	if err != nil {
		return Verified{}, nil, err
	}
	ordered := newestFirst(candidates, before)
	if !f.moment.IsZero() {
		ordered = lateLast(ordered, f.moment)
	}
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
		if why := f.otherCluster(object); why != nil {
			// Its revisions say nothing about those of the others.
			s.foreign, s.tried[c.key] = s.foreign+1, true
			s.pass(c, why)
			continue
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
	case s.found == nil && s.nearest.known() && s.damaged > 0:
		return Verified{}, s.passed, damaged{f.place.Path(f.pattern()), fmt.Errorf("no good backup holds revision %d, or is taken there by the log: %w; %s", f.revision, s.damage, s.nearest)}
	case s.found == nil && s.nearest.known():
		return Verified{}, s.passed, fmt.Errorf("%w: none of the %d backups %s holds revision %d: %s", ErrOutside, len(s.passed), f.place.Path(f.pattern()), f.revision, s.nearest)
	case s.found == nil && s.damaged > 0:
		return Verified{}, s.passed, damaged{f.place.Path(f.pattern()), fmt.Errorf("none of the %d backups that were tried is good; the newest: %s", len(s.passed), s.passed[0])}
	case s.found == nil && s.foreign > 0:
		return Verified{}, s.passed, fmt.Errorf("%w: none of the %d backups %s comes from the cluster %016x; the newest: %s", store.ErrNotFound, len(s.passed), f.place.Path(f.pattern()), f.cluster, s.passed[0])
	case s.found == nil:
		return Verified{}, s.passed, fmt.Errorf("%w: all of the %d backups that were there have been deleted meanwhile", store.ErrNotFound, len(s.passed))
	}
	for _, w := range s.queue.waiting {
		s.pass(w, fmt.Errorf("it was taken without a quorum, at revision %d, and an older one holds more", w.revision))
	}
	if more, ok := s.holdsMore(ordered); ok && f.revision == 0 {
		s.passed = slices.Insert(s.passed, 0, fmt.Sprintf("%s: it is older, and its revision is %d, where that of %s is %d: if the cluster was lost and recreated in between, and not restored, this backup holds the lost data",
			f.place.Path(more.key), more.revision, s.found.Path, s.found.EtcdRevision))
	}
	if also := f.alsoIn(s.found.ClusterID); also != "" {
		s.passed = slices.Insert(s.passed, 0, also)
	}
	return *s.found, s.passed, nil
}

// holdsMore returns the newest of the backups with the highest revision, if it is older than
// the chosen backup, was not tried, and has a higher revision. A schedule continues if its
// cluster was lost and recreated empty. The newest backup is then not the one that its owner
// looks for. Revisions are also lower after a restore, so the caller only warns.
func (s *search) holdsMore(ordered []candidate) (candidate, bool) {
	most := slices.MaxFunc(ordered, func(a, b candidate) int { return cmp.Compare(a.revision, b.revision) })
	return most, most.revision > s.found.EtcdRevision && !s.tried[most.key] && most.time().Before(s.found.Taken)
}

// try verifies candidates in their order until one is good.
func (s *search) try(ctx context.Context, candidates []candidate) error {
	for _, c := range candidates {
		var outside rewind.OutsideError
		v, err := s.verify(ctx, s.objects[c.key])
		delete(s.objects, c.key)
		s.tried[c.key] = true
		switch {
		case err == nil:
			s.found = &v
			return nil
		// While one backup is unreadable, the newest good one is unknown.
		case errors.As(err, &outside):
			s.nearest.add(outside)
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, store.ErrNotFound):
			return err
		case errors.Is(err, ErrDamaged):
			if s.damaged++; s.damage == nil {
				s.damage = err
			}
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

// list returns the backups of the schedule, and how many objects have its prefix.
func (f finder) list(ctx context.Context) (candidates []candidate, seen int, err error) {
	for object, err := range objectsBelow(ctx, f.place, backupobject.KeyPrefix(f.place.Key)) {
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

// pattern returns the form of the keys, for people.
func (f finder) pattern() string {
	return backupobject.KeyPrefix(f.place.Key) + "<revision>_<YYYY-MM-DD-HH:MM:SS>"
}

// none returns the error for no backup to try.
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
