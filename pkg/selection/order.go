// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// candidate is a backup of a schedule, as its key describes it.
type candidate struct {
	key      string
	revision int64
	begun    time.Time // by the clock of the operator that took it
	modified time.Time // by the store's clock
}

// time returns when the backup was taken. No backup begins after its upload: if its name says
// so, the operator's clock was ahead. The upload's time alone is not enough: a copy to another
// bucket changes it.
func (c candidate) time() time.Time {
	if !c.modified.IsZero() && c.modified.Before(c.begun) {
		return c.modified
	}
	return c.begun
}

// newestFirst sorts the backups that began at a time or before it; zero: all of them.
func newestFirst(candidates []candidate, before time.Time) []candidate {
	return slices.SortedFunc(func(yield func(candidate) bool) {
		for _, c := range candidates {
			if (before.IsZero() || !c.time().After(before)) && !yield(c) {
				return
			}
		}
	}, func(a, b candidate) int {
		return cmp.Or(b.time().Compare(a.time()), cmp.Compare(b.revision, a.revision), strings.Compare(b.key, a.key))
	})
}

// lateLast moves the backups that began after a moment behind the others.
func lateLast(ordered []candidate, moment time.Time) []candidate {
	var late []candidate
	early := slices.DeleteFunc(ordered, func(c candidate) bool {
		if !c.time().After(moment) {
			return false
		}
		late = append(late, c)
		return true
	})
	return append(early, late...)
}

// queue orders backups, newest first, for the search to try. It learns whether a backup is
// uncertain only in its turn, since that takes a request to the store.
//
// A backup without a quorum holds the data of the most advanced member that answered. An older
// backup may hold more, and then shows a higher revision: it goes first. The order ignores
// revisions across a certain backup, which holds all writes of its time: after a restore they
// begin lower.
type queue struct {
	// waiting are uncertain backups, newest first, before which an older one may go.
	waiting []candidate
}

// add takes the next backup and returns those whose turn it is now.
func (q *queue) add(c candidate, uncertain bool) []candidate {
	if uncertain {
		q.waiting = append(q.waiting, c)
		return nil
	}
	var now, later []candidate
	for _, w := range q.waiting {
		if w.revision >= c.revision {
			now = append(now, w)
		} else {
			later = append(later, w)
		}
	}
	q.waiting = later
	return append(mostAdvanced(now), c)
}

// rest returns the remaining backups when there are no more to add.
func (q *queue) rest() []candidate {
	rest := mostAdvanced(q.waiting)
	q.waiting = nil
	return rest
}

// mostAdvanced sorts uncertain backups by revision. Of equal ones, the newer goes first.
func mostAdvanced(uncertain []candidate) []candidate {
	slices.SortStableFunc(uncertain, func(a, b candidate) int { return cmp.Compare(b.revision, a.revision) })
	return uncertain
}
