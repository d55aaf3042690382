// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// stored is a backup on a schedule that this EtcdBackup made.
type stored struct {
	key      string
	revision int64
	begun    time.Time // by the operator's clock, as its name says
	modified time.Time // by the store's clock
	// uncertain means that writes may be missing in it: etcd had no quorum.
	uncertain bool
	// base means that the schedule did not want it: the log of changes had begun again.
	base    bool
	cluster string // ID of etcd's cluster; "": unknown
}

// formerClusters is of how many clusters, which the schedule has backed up before the one of now, a backup
// stays.
const formerClusters = 3

// time is when the backup was made. A backup is not begun after it is stored: if
// the name says so, the operator's clock was ahead. The store's time alone would
// not do: a copy from bucket to bucket sets it again.
func (s stored) time() time.Time {
	if s.modified.Before(s.begun) {
		return s.modified
	}
	return s.begun
}

// keeping says which backups to keep.
type keeping struct {
	newest int           // this many; 0: all
	age    time.Duration // those that are not older; 0: all
	// full means that the store had no room for the snapshot of the last attempt.
	full bool
	// uncertain means that this snapshot may lack writes: etcd has no quorum now.
	uncertain bool
}

// surplus are the backups to delete, the oldest first, and at the end what goes only in a full store. The newest is
// never among them, nor the one that was made last, by whatever clocks.
//
// Uncertain ones are counted apart: they never take the place of those that hold all
// writes, of which none is deleted while the one that was made last is uncertain, and
// never the newest. In a full store, the snapshot that found no room counts instead: etcd may have lost
// its quorum since the one that was made last, or have it again.
//
// So are bases. They never take the place of those on the schedule, and stay as long as the log needs them:
// as long as those around them, or until there are as many newer bases. In a full store, the oldest bases go
// until both kinds together are as many as are kept: people give a store room for so many. If nothing else is
// to go, the oldest one on the schedule does: otherwise the newest base, or what former clusters have left, would
// end all further backups. Each attempt that finds no room costs one, as each success does.
//
// Where etcd is at a lower revision than it was, it was restored, or lost and recreated.
// The schedule continues, and would replace all that holds what was lost. After a long
// time without a backup, the first one would, because all others are too old. So the
// backup of the highest revision is never among them. The new cluster may have come as far, so the
// newest backup of each of the last former clusters is not, either.
func (k keeping) surplus(backups []stored, last string, now time.Time) []stored {
	if k.newest == 0 && k.age == 0 || len(backups) == 0 {
		return nil
	}
	// A clock that is ahead would make all of them old.
	storesNow := slices.MaxFunc(backups, func(a, b stored) int { return a.modified.Compare(b.modified) }).modified
	if storesNow.Before(now) {
		now = storesNow
	}
	newestFirst := slices.SortedFunc(slices.Values(backups), func(a, b stored) int {
		return cmp.Or(b.time().Compare(a.time()), cmp.Compare(b.revision, a.revision), strings.Compare(b.key, a.key))
	})
	lastUncertain := slices.ContainsFunc(backups, func(b stored) bool { return b.key == last && b.uncertain })
	highest := slices.MaxFunc(newestFirst, func(a, b stored) int { return cmp.Compare(a.revision, b.revision) }).key
	if k.full {
		lastUncertain = k.uncertain
	}
	former := lastOfFormer(newestFirst, last)
	var surplus, spare, scheduled []stored
	var certain, uncertain struct{ scheduled, bases int } // that are newer
	for i, b := range newestFirst {
		newer := &certain
		if b.uncertain {
			newer = &uncertain
		}
		tooMany := k.newest > 0 && (newer.scheduled >= k.newest || b.base && newer.bases >= k.newest)
		tooOld := k.age > 0 && now.Sub(b.time()) > k.age
		first := newer.scheduled == 0 && (!b.base || newer.bases == 0)
		newest := newer.scheduled == 0 && newer.bases == 0
		held := i == 0 || b.key == last || b.key == highest || slices.Contains(former, b.key) || !b.uncertain && (newest || lastUncertain)
		kept := held || !b.uncertain && first
		if b.base {
			newer.bases++
		} else {
			newer.scheduled++
		}
		switch {
		case !kept && (tooMany || tooOld):
			surplus = append(surplus, b)
		case !kept && b.base && !b.uncertain:
			spare = append(spare, b)
		case !held && !b.base && !b.uncertain:
			scheduled = append(scheduled, b)
		}
	}
	slices.Reverse(surplus)
	if k.full && k.newest > 0 {
		left := certain.scheduled + certain.bases
		for _, b := range surplus {
			if !b.uncertain {
				left--
			}
		}
		slices.Reverse(spare)
		surplus = append(surplus, spare[:max(0, min(len(spare), left-k.newest))]...)
		if len(surplus) == 0 && len(scheduled) > 0 && left > k.newest {
			surplus = scheduled[len(scheduled)-1:]
		}
	}
	return surplus
}

// lastOfFormer returns the keys of the newest backups of former clusters, one of each. One that holds all
// writes precedes those that may not.
func lastOfFormer(newestFirst []stored, last string) []string {
	current := newestFirst[0].cluster
	if i := slices.IndexFunc(newestFirst, func(b stored) bool { return b.key == last }); i >= 0 {
		current = newestFirst[i].cluster
	}
	var chosen []stored
	for _, b := range newestFirst {
		if b.cluster == "" || b.cluster == current {
			continue
		}
		switch i := slices.IndexFunc(chosen, func(c stored) bool { return c.cluster == b.cluster }); {
		case i >= 0 && chosen[i].uncertain && !b.uncertain:
			chosen[i] = b
		case i < 0 && len(chosen) < formerClusters:
			chosen = append(chosen, b)
		}
	}
	var keys []string
	for _, b := range chosen {
		keys = append(keys, b.key)
	}
	return keys
}
