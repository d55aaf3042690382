// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// candidate is a backup on a schedule, as its key tells of it.
type candidate struct {
	key      string
	revision int64
	begun    time.Time // by the clock of the operator that made it
	modified time.Time // by the store's clock
}

// time is when it was made. None is begun after it was stored: where its name says
// so, the operator's clock was ahead. The store's time alone would not do: it is anew
// where objects are copied from bucket to bucket.
func (c candidate) time() time.Time {
	if !c.modified.IsZero() && c.modified.Before(c.begun) {
		return c.modified
	}
	return c.begun
}

// newestFirst sorts those that were begun at a time or before it; zero: all of them.
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

// queue puts backups in the order in which to try them. It takes them newest first,
// and each is known to be uncertain or not only when it is its turn, since the store
// has to be asked for that.
//
// One that was taken without a quorum holds what the most advanced member knew that
// could be asked. That may be less than an older backup holds, which tells a higher
// revision: then that one comes first. Revisions are not compared across a backup
// that holds all writes of its time: after an earlier restore they begin lower.
type queue struct {
	// waiting are uncertain ones, newest first, which an older one may go before.
	waiting []candidate
}

// add takes the next one and returns those whose turn it is now.
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

// rest are those that are left when there are no more to add.
func (q *queue) rest() []candidate {
	rest := mostAdvanced(q.waiting)
	q.waiting = nil
	return rest
}

// mostAdvanced sorts uncertain ones by their revisions; of equal ones the newer
// stays first.
func mostAdvanced(uncertain []candidate) []candidate {
	slices.SortStableFunc(uncertain, func(a, b candidate) int { return cmp.Compare(b.revision, a.revision) })
	return uncertain
}
