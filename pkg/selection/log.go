// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// logs is the logs of changes below a path.
type logs struct {
	finder
	keys  map[uint64][]changelog.Key // of each cluster
	sizes map[string]int64           // of the segments, by key
}

// readLogs lists the logs.
func (f finder) readLogs(ctx context.Context) (*logs, error) {
	l := &logs{finder: f, keys: map[uint64][]changelog.Key{}, sizes: map[string]int64{}}
	for object, err := range f.place.List(ctx, changelog.KeyPrefix(f.place.Key)) {
		if err != nil {
			return nil, fmt.Errorf("look for the log of changes: %w", err)
		}
		if k, ours := changelog.ParseKey(f.place.Key, object.Key); ours && (f.cluster == 0 || k.Cluster == f.cluster) {
			l.keys[k.Cluster], l.sizes[k.Text] = append(l.keys[k.Cluster], k), object.Size
		}
	}
	return l, nil
}

// chain returns the segments that take a snapshot of a revision to another one; nil: they do
// not reach it.
func chain(keys []changelog.Key, from, to int64) []changelog.Key {
	all := changelog.Chain(keys, from)
	for i, k := range all {
		if k.Last >= to {
			return all[:i+1]
		}
	}
	return nil
}

// reach returns how far the log takes a snapshot of a revision.
func reach(keys []changelog.Key, from int64) int64 {
	last := from
	for _, k := range changelog.Chain(keys, from) {
		last = max(last, k.Last)
	}
	return last
}

// at finds the revision that a cluster had at a moment. If another cluster has taken its place
// under the same path, the moments of both differ.
func (l *logs) at(ctx context.Context, moment time.Time) (cluster uint64, revision int64, err error) {
	log := l.place.Path(changelog.KeyPrefix(l.place.Key))
	var nearest []string
	var found time.Time
	for _, id := range slices.Sorted(maps.Keys(l.keys)) {
		for _, p := range pieces(l.keys[id]) {
			since, err := l.since(ctx, p)
			if err != nil {
				return 0, 0, err
			}
			until := p.segments[len(p.segments)-1].Until
			if moment.Before(since) || moment.After(until) {
				nearest = append(nearest, text(since)+" to "+text(until))
				continue
			}
			if until.Before(found) {
				continue
			}
			found, cluster = until, id
			if revision, err = l.within(ctx, p.segments, moment); err != nil {
				return 0, 0, err
			}
		}
	}
	switch {
	case cluster != 0:
		return cluster, revision, nil
	case len(nearest) == 0:
		return 0, 0, fmt.Errorf("%w: spec.time needs a log of changes, and there is none below %s: the path must be that of an EtcdBackup with spec.continuous", store.ErrNotFound, log)
	}
	return 0, 0, fmt.Errorf("%w: the log of changes below %s does not contain the moment %s; it contains %s", ErrOutside, log, text(moment), strings.Join(nearest, ", "))
}

func text(moment time.Time) string { return moment.UTC().Format(time.RFC3339) }

// piece is a part of a log without a gap.
type piece struct {
	segments []changelog.Key
	// since is the earliest moment that lies in the piece by its keys; zero: they do not show
	// it.
	since time.Time
}

// pieces cuts the segments of a cluster where the log has a gap.
func pieces(keys []changelog.Key) (all []piece) {
	for end := int64(-1); ; {
		first := int64(-1)
		for _, k := range keys {
			if k.First-1 > end && (first < 0 || k.First < first) {
				first = k.First
			}
		}
		if first < 0 {
			return all
		}
		p := piece{segments: changelog.Chain(keys, first-1)}
		for _, k := range keys {
			// A log begins with a segment that says that nothing has changed yet.
			if k.Last == first-1 && (p.since.IsZero() || k.Until.Before(p.since)) {
				p.since = k.Until
			}
		}
		all = append(all, p)
		end = reach(keys, first-1)
	}
}

// since returns the earliest moment of a piece.
func (l *logs) since(ctx context.Context, p piece) (time.Time, error) {
	if !p.since.IsZero() {
		return p.since, nil
	}
	s, err := l.segment(ctx, p.segments[0])
	if err != nil {
		return time.Time{}, err
	}
	// If the log begins with it, its writer had read the revision before, and then asked.
	if s.Trail != nil && s.Trail.Origin == s.First-1 && s.Until.Before(s.Revisions[0].At) {
		return s.Until, nil
	}
	// What was before is deleted: the piece begins with the first change that is left.
	return s.Revisions[0].At, nil
}

// within finds the revision at a moment that a piece contains.
func (l *logs) within(ctx context.Context, segments []changelog.Key, moment time.Time) (int64, error) {
	// The segment before the moment may hold changes of after its own. So may all that a log stored
	// with the same one, while it caught up.
	begin := 0
	for i, k := range segments {
		if k.Until.Before(moment) && k.Until.After(segments[begin].Until) {
			begin = i
		}
	}
	revision := segments[begin].First - 1
	for _, k := range segments[begin:] {
		if k.Last >= k.First {
			s, err := l.segment(ctx, k)
			if err != nil {
				return 0, err
			}
			for _, r := range s.Revisions {
				if r.At.After(moment) {
					return revision, nil
				}
				revision = max(revision, r.Main)
			}
		}
		if !k.Until.Before(moment) {
			break
		}
	}
	return revision, nil
}

// segment reads and verifies a segment.
func (l *logs) segment(ctx context.Context, key changelog.Key) (*changelog.Segment, error) {
	content, err := l.content(ctx, l.object(key))
	if err != nil {
		return nil, err
	}
	return l.decode(key, content)
}

func (l *logs) object(key changelog.Key) store.Object {
	return store.Object{Key: key.Text, Size: l.sizes[key.Text]}
}

func (l *logs) content(ctx context.Context, object store.Object) ([]byte, error) {
	if object.Size > changelog.MaxSize {
		return nil, damaged{l.place.Path(object.Key), fmt.Errorf("%w: it has %d bytes", changelog.ErrDamaged, object.Size)}
	}
	var content bytes.Buffer
	if err := l.read(ctx, object, &content); err != nil {
		return nil, fmt.Errorf("read the log of changes: %w", err)
	}
	return content.Bytes(), nil
}

func (l *logs) decode(key changelog.Key, content []byte) (*changelog.Segment, error) {
	s, err := changelog.Decode(content)
	if err == nil && !key.Fits(s) {
		err = fmt.Errorf("%w: it is another one than its key says", changelog.ErrDamaged)
	}
	if err != nil {
		return nil, damaged{l.place.Path(key.Text), err}
	}
	return s, nil
}

// follow verifies the log from a snapshot to a revision, and writes it to sum. It returns its
// size.
func (l *logs) follow(ctx context.Context, segments []changelog.Key, from, to int64, sum io.Writer) (size int64, err error) {
	var objects []store.Object
	for _, k := range segments {
		objects = append(objects, l.object(k))
	}
	replay := changelog.Replay{Last: from}
	read := 0
	for content, err := range store.ReadAhead(ctx, objects, l.content) {
		if err != nil {
			return 0, err
		}
		k := segments[read]
		read++
		s, err := l.decode(k, content)
		if err != nil {
			return 0, err
		}
		if _, err := replay.Add(s); err != nil {
			return 0, damaged{l.place.Path(k.Text), err}
		}
		if _, err := sum.Write(content); err != nil {
			return 0, err
		}
		size += int64(len(content))
	}
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("stopped: %w", context.Cause(ctx))
	case replay.Last < to:
		return 0, damaged{l.place.Path(l.place.Key), fmt.Errorf("%w: it ends with revision %d", changelog.ErrGap, replay.Last)}
	}
	return size, nil
}

// Segments returns the objects of the log that takes a snapshot of a revision to another one, as
// Find has chosen them. The error is store.ErrNotFound if some are no longer there.
func Segments(ctx context.Context, place *location.Location, cluster string, from, to int64) ([]store.Object, error) {
	id, err := strconv.ParseUint(cluster, 16, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no ID of a cluster: %w", cluster, err)
	}
	var keys []changelog.Key
	objects := map[string]store.Object{}
	for object, err := range place.List(ctx, changelog.ClusterPrefix(place.Key, id)) {
		if err != nil {
			return nil, fmt.Errorf("look for the log of changes: %w", err)
		}
		if k, ours := changelog.ParseKey(place.Key, object.Key); ours {
			keys, objects[object.Key] = append(keys, k), object
		}
	}
	segments := chain(keys, from, to)
	if segments == nil {
		return nil, fmt.Errorf("%w: the log of changes from revision %d to %d", store.ErrNotFound, from, to)
	}
	var found []store.Object
	for _, k := range segments {
		found = append(found, objects[k.Text])
	}
	return found, nil
}
