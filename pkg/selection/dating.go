// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// maxPause is the longest time without a segment while somebody records. A recorder stores one every
// minute, even if nothing changes. With the largest lag, that takes half a minute more.
const maxPause = 2 * time.Minute

// dating follows the revisions of a log up to a moment. A revision has the moment at which the
// recorder received it. That is much later than its write if nobody recorded then.
type dating struct {
	log    *changelog.Index
	moment time.Time
	// known is up to when the log surely dates what etcd wrote.
	known time.Time
	// revision is the last one that passed.
	revision int64
	pause    pause
}

// pause is a time that a log has nothing of, and the revisions that came at its end. etcd may have
// written them at any moment of it. The zero value is none.
type pause struct {
	from, until time.Time
	first, last int64
}

// pass takes the next revision, unless it surely came after the moment: that ends the search.
func (d *dating) pass(r changelog.Revision) (after bool) {
	if r.Main <= d.revision {
		return false // another operator has stored it as well
	}
	if d.pause.first == 0 && d.silent(r) {
		d.confirm(d.quiet(r.Main))
		if d.silent(r) {
			d.pause = pause{from: d.known, first: r.Main}
		}
	}
	switch {
	case d.pause.first > 0:
		d.pause.until, d.pause.last = later(d.pause.until, r.At), r.Main
	case r.At.After(d.moment):
		return true
	default:
		d.confirm(r.At)
	}
	d.revision = r.Main
	return false
}

// silent reports whether the log has nothing for too long before a revision, and the moment may lie in
// that time.
func (d *dating) silent(r changelog.Revision) bool {
	return d.moment.After(d.known) && r.At.Sub(d.known) > maxPause
}

// quiet is up to when segments say that a revision has not come yet. A chain has no such segment if
// the revision follows in another one.
func (d *dating) quiet(revision int64) (until time.Time) {
	for m := range d.log.After(revision - 1) {
		if m.First > revision {
			break
		}
		if m.Last < m.First {
			until = later(until, m.Until())
		}
	}
	return until
}

func (d *dating) confirm(moment time.Time) { d.known = later(d.known, moment) }

// undated is the error if the moment lies in a pause.
func (l *logs) undated(d dating) error {
	p := d.pause
	if !p.until.After(d.moment) {
		return nil
	}
	until := p.until.Add(time.Second - 1).Truncate(time.Second) // a spec has whole seconds
	return fmt.Errorf("%w: the log of changes below %s was not written from %s to %s: nobody knows which of the revisions %d to %d etcd had at %s: "+
		"set spec.revision instead of spec.time (%d is the last one before), or name a moment outside of that time",
		ErrOutside, l.place.Path(changelog.KeyPrefix(l.place.Key)), text(p.from), text(until), p.first, p.last, text(d.moment), p.first-1)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
