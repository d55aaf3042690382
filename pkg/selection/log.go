// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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
	of map[uint64]*changelog.Index // by the ID of the cluster
}

// readLogs lists the logs.
func (f finder) readLogs(ctx context.Context) (*logs, error) {
	l := &logs{finder: f, of: map[uint64]*changelog.Index{}}
	for object, err := range objectsBelow(ctx, f.place, changelog.KeyPrefix(f.place.Key)) {
		if err != nil {
			return nil, fmt.Errorf("look for the log of changes: %w", err)
		}
		k, ours := changelog.ParseKey(f.place.Key, object.Key)
		if !ours || f.cluster != 0 && k.Cluster != f.cluster || f.revision > 0 && k.First > f.revision {
			continue // the restore does not need it
		}
		if l.of[k.Cluster] == nil {
			l.of[k.Cluster] = changelog.NewIndex(k.Cluster)
		}
		l.of[k.Cluster].Add(k, object.Size)
	}
	return l, nil
}

// chain returns the segments that take a snapshot of a revision to another one; nil: they do
// not reach it. index may be nil.
func chain(index *changelog.Index, from, to int64) (segments []changelog.Mark) {
	if index == nil {
		return nil
	}
	for m := range index.Chain(from) {
		segments = append(segments, m)
		if m.Last >= to {
			return segments
		}
	}
	return nil
}

// reach returns how far the log takes a snapshot of a revision. index may be nil.
func reach(index *changelog.Index, from int64) int64 {
	last := from
	if index == nil {
		return last
	}
	for m := range index.Chain(from) {
		last = max(last, m.Last)
	}
	return last
}

// at finds the revision that a cluster had at a moment. If another cluster has taken its place
// under the same path, the moments of both differ. Of two that were there at once, it takes the one
// whose log ends later; rival names the other one.
func (l *logs) at(ctx context.Context, moment time.Time) (cluster uint64, rival string, revision int64, err error) {
	log := l.place.Path(changelog.KeyPrefix(l.place.Key))
	var nearest []string
	var containing []uint64
	var unread []unreadPiece
	var found piece
	var begins time.Time // of found
	for _, id := range slices.Sorted(maps.Keys(l.of)) {
		for _, p := range pieces(l.of[id]) {
			// Segments of long ago may be archived, and nothing needs them.
			if moment.After(p.until) {
				nearest = append(nearest, text(p.sinceByKeys())+" to "+text(p.until))
				continue
			}
			since, err := l.since(ctx, p, moment)
			switch {
			case err != nil && ctx.Err() != nil:
				return 0, "", 0, err
			case err != nil:
				unread = append(unread, unreadPiece{id, p.until, err})
			case moment.Before(since):
				nearest = append(nearest, text(since)+" to "+text(p.until))
			default:
				containing = append(containing, id)
				if !p.until.Before(found.until) {
					found, begins, cluster = p, since, id
				}
			}
		}
	}
	switch {
	case cluster == 0 && len(unread) > 0:
		// A damaged one stays so, and another may be readable soon.
		first := max(0, slices.IndexFunc(unread, func(u unreadPiece) bool { return !errors.Is(u.err, ErrDamaged) }))
		return 0, "", 0, unread[first].err
	case cluster == 0 && len(nearest) == 0:
		return 0, "", 0, fmt.Errorf("%w: spec.time needs a log of changes, and there is none below %s: the path must be that of an EtcdBackup with spec.continuous", store.ErrNotFound, log)
	case cluster == 0:
		return 0, "", 0, fmt.Errorf("%w: the log of changes below %s does not contain the moment %s; it contains %s", ErrOutside, log, text(moment), strings.Join(nearest, ", "))
	}
	for _, u := range unread {
		switch {
		case u.cluster == cluster: // the pieces of one log follow each other: no two contain a moment
		case u.until.Before(found.until):
			rival = fmt.Sprintf("%s (nobody knows, for its begin can't be read: %v)", l.instead(u.cluster, "may contain the moment "+text(moment)), u.err)
		default:
			return 0, "", 0, fmt.Errorf("the log of changes of the cluster %016x may contain the moment %s, as that of the cluster %016x does: to restore the latter, set spec.clusterID: %016x; the former can't be read: %w",
				u.cluster, text(moment), cluster, cluster, u.err)
		}
	}
	for _, id := range containing {
		if id != cluster {
			rival = l.instead(id, "contains the moment "+text(moment))
		}
	}
	revision, err = l.within(ctx, found, begins, moment)
	return cluster, rival, revision, err
}

// unreadPiece is a piece that ends after a moment, and whose begin can't be read.
type unreadPiece struct {
	cluster uint64
	until   time.Time
	err     error
}

func text(moment time.Time) string { return moment.UTC().Format(time.RFC3339) }

// piece is a part of a log without a gap.
type piece struct {
	log *changelog.Index
	// from is the revision before it, and first the first segment.
	from  int64
	first changelog.Mark
	// since is the earliest moment that lies in the piece by its keys; zero: they do not show
	// it.
	since time.Time
	// until is when the last segment ends.
	until time.Time
}

// sinceByKeys is about when the piece begins.
func (p piece) sinceByKeys() time.Time {
	if p.since.IsZero() {
		return p.first.Until()
	}
	return p.since
}

// before returns the segment from which on the piece shows the revision at a moment. The segment
// before the moment may hold changes of after its own. So may all that a log stored with the same one,
// while it caught up.
func (p piece) before(moment time.Time) changelog.Mark {
	begin := p.first
	for m := range p.segments() {
		if m.Until().Before(moment) && m.Until().After(begin.Until()) {
			begin = m
		}
	}
	return begin
}

// segments yields those of the piece.
func (p piece) segments() iter.Seq[changelog.Mark] { return p.log.Chain(p.from) }

// pieces cuts the log of a cluster at its gaps.
func pieces(log *changelog.Index) (all []piece) {
	for end := int64(-1); ; {
		p := piece{log: log, from: -1}
		for m := range log.After(end + 1) {
			if p.from >= 0 && m.First-1 > p.from {
				break
			}
			p.from = m.First - 1
			// A log begins with a segment that says that nothing has changed yet.
			if m.Last == p.from && (p.since.IsZero() || m.Until().Before(p.since)) {
				p.since = m.Until()
			}
		}
		if p.from < 0 {
			return all
		}
		begun := false
		end = p.from
		for m := range p.segments() {
			if !begun {
				p.first, begun = m, true
			}
			p.until, end = m.Until(), max(end, m.Last)
		}
		all = append(all, p)
	}
}

// since returns the earliest moment of a piece. If its first segment can't be read, a moment that does not
// need that lies in the piece: since returns one before it.
func (l *logs) since(ctx context.Context, p piece, moment time.Time) (time.Time, error) {
	if !p.since.IsZero() {
		return p.since, nil
	}
	since, err := l.earliest(ctx, p.log, p.first)
	if err == nil {
		return since, nil
	}
	// It is as good as deleted.
	if begin := p.before(moment); begin != p.first {
		if later, failure := l.earliest(ctx, p.log, begin); failure == nil && !later.After(moment) {
			return p.first.Until(), nil
		}
	}
	return time.Time{}, err
}

// earliest returns the earliest moment of a log that begins with a segment.
func (l *logs) earliest(ctx context.Context, log *changelog.Index, m changelog.Mark) (time.Time, error) {
	if m.Last < m.First {
		return m.Until(), nil
	}
	s, err := l.segment(ctx, log, m)
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

// within finds the revision at a moment that a piece contains, which begins at since.
func (l *logs) within(ctx context.Context, p piece, since, moment time.Time) (int64, error) {
	begin := p.before(moment)
	d, begun := dating{log: p.log, moment: moment, known: since, revision: begin.First - 1}, false
	for m := range p.segments() {
		if begun = begun || m == begin; !begun {
			d.confirm(m.Until())
			continue
		}
		if m.Last >= m.First {
			s, err := l.segment(ctx, p.log, m)
			if err != nil {
				return 0, err
			}
			for _, r := range s.Revisions {
				if d.pass(r) {
					return d.revision, nil
				}
			}
		}
		// All that etcd had before Until is in the log up to here.
		if m.Until().After(d.known) {
			if err := l.undated(d); err != nil {
				return 0, err
			}
			d.pause = pause{}
			d.confirm(m.Until())
		}
		if !m.Until().Before(moment) {
			break
		}
	}
	return d.revision, l.undated(d)
}

// segment reads and verifies a segment.
func (l *logs) segment(ctx context.Context, log *changelog.Index, m changelog.Mark) (*changelog.Segment, error) {
	key := log.Key(l.place.Key, m)
	content, err := l.content(ctx, store.Object{Key: key.Text, Size: m.Size()})
	if err != nil {
		return nil, err
	}
	return l.decode(key, content)
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
func (l *logs) follow(ctx context.Context, log *changelog.Index, segments []changelog.Mark, from, to int64, sum io.Writer) (size int64, err error) {
	var objects []store.Object
	for _, m := range segments {
		objects = append(objects, store.Object{Key: log.Key(l.place.Key, m).Text, Size: m.Size()})
	}
	replay := changelog.Replay{Last: from}
	read := 0
	for content, err := range store.ReadAhead(ctx, objects, l.content) {
		if err != nil {
			return 0, err
		}
		k := log.Key(l.place.Key, segments[read])
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
	log := changelog.NewIndex(id)
	for object, err := range objectsBelow(ctx, place, changelog.ClusterPrefix(place.Key, id)) {
		if err != nil {
			return nil, fmt.Errorf("look for the log of changes: %w", err)
		}
		if k, ours := changelog.ParseKey(place.Key, object.Key); ours && k.First <= to && k.Last >= from {
			log.Add(k, object.Size)
		}
	}
	segments := chain(log, from, to)
	if segments == nil {
		return nil, fmt.Errorf("%w: the log of changes from revision %d to %d", store.ErrNotFound, from, to)
	}
	var found []store.Object
	for _, m := range segments {
		found = append(found, store.Object{Key: log.Key(place.Key, m).Text, Size: m.Size()})
	}
	return found, nil
}
