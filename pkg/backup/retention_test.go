// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestWhichBackupsAreDeleted(t *testing.T) {
	noon := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	// days describes backups by when they were begun, by the operator's clock, and
	// stored, by the store's; in days before noon.
	type days struct{ begun, stored float64 }
	both := func(list ...float64) (all []days) {
		for _, d := range list {
			all = append(all, days{d, d})
		}
		return all
	}
	day := 24 * time.Hour
	for _, c := range []struct {
		name    string
		keep    keeping
		now     time.Time
		backups []days
		last    string
		want    string
	}{
		{"all are kept by default", keeping{}, noon, both(0, 1, 2, 3), "", ""},
		{"the oldest of too many", keeping{newest: 2}, noon, both(2, 0, 3, 1), "", "3 2"},
		{"as many as wanted", keeping{newest: 4}, noon, both(0, 1, 2, 3), "", ""},
		{"those that are too old", keeping{age: 36 * time.Hour}, noon, both(0, 1, 2, 3), "", "3 2"},
		{"one that has just the age is kept", keeping{age: day}, noon, both(0, 1), "", ""},
		{"either rule", keeping{newest: 3, age: 36 * time.Hour}, noon, both(0, 0.1, 0.2, 0.3, 3), "", "3 0.3"},
		{"the newest is kept whatever its age", keeping{age: day}, noon, both(20, 30), "", "30"},
		{"none", keeping{newest: 1, age: day}, noon, nil, "", ""},
		{"the one that was made last is kept, whatever the clocks say", keeping{newest: 1}, noon, both(0, 5), "5", ""},
		{"a clock that is ahead makes nothing old", keeping{age: 2 * day}, noon.Add(3650 * day), both(0, 1, 2, 3), "", "3"},
		{"names from a clock that was ahead don't outlive newer ones", keeping{newest: 2}, noon, []days{{-3650, 3}, {-3650, 2}, {1, 1}, {0, 0}}, "0", "-3650/3 -3650/2"},
		{"in a bucket that was copied from another", keeping{newest: 2}, noon, []days{{3, 0.1}, {2, 0.3}, {1, 0.2}, {0, 0}}, "0", "3/0.1 2/0.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := func(d float64) time.Time { return noon.Add(-time.Duration(d * float64(day))) }
			var backups []stored
			for _, d := range c.backups {
				key := fmt.Sprint(d.begun)
				if d.begun != d.stored {
					key = fmt.Sprintf("%v/%v", d.begun, d.stored)
				}
				backups = append(backups, stored{key: key, begun: before(d.begun), modified: before(d.stored)})
			}
			var got []string
			for _, b := range c.keep.surplus(backups, c.last, c.now) {
				got = append(got, b.key)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("deletes %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheNewestBackupIsNeverDeleted(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7)) // must be repeatable
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moment := func() time.Time { return start.Add(time.Duration(random.IntN(100)) * time.Hour) }
	for range 2000 {
		var backups []stored
		for i := range 1 + random.IntN(12) {
			backups = append(backups, stored{key: fmt.Sprint(i), revision: int64(random.IntN(3)), begun: moment(), modified: moment(), uncertain: random.IntN(3) == 0})
		}
		keep := keeping{newest: random.IntN(4), age: time.Duration(random.IntN(50)) * time.Hour}
		last := fmt.Sprint(random.IntN(len(backups)))
		surplus := keep.surplus(backups, last, moment())
		left := slices.DeleteFunc(slices.Clone(backups), func(b stored) bool { return slices.Contains(surplus, b) })
		newest := slices.MaxFunc(backups, func(a, b stored) int { return a.time().Compare(b.time()) })
		if !slices.ContainsFunc(left, func(b stored) bool { return b.time().Equal(newest.time()) }) {
			t.Fatalf("%+v of %+v deletes the newest: %+v", keep, backups, surplus)
		}
		if !slices.ContainsFunc(left, func(b stored) bool { return b.key == last }) {
			t.Fatalf("%+v of %+v deletes the last, %s: %+v", keep, backups, last, surplus)
		}
		whole := slices.DeleteFunc(slices.Clone(backups), func(b stored) bool { return b.uncertain })
		if len(whole) > 0 {
			newest := slices.MaxFunc(whole, func(a, b stored) int { return a.time().Compare(b.time()) })
			if !slices.ContainsFunc(left, func(b stored) bool { return !b.uncertain && b.time().Equal(newest.time()) }) {
				t.Fatalf("%+v of %+v deletes the newest that holds all writes: %+v", keep, backups, surplus)
			}
		}
		lastUncertain := slices.ContainsFunc(backups, func(b stored) bool { return b.key == last && b.uncertain })
		for _, uncertain := range []bool{false, true} {
			kept := 0
			for _, b := range left {
				if b.uncertain == uncertain {
					kept++
				}
			}
			if keep.newest > 0 && kept > keep.newest+2 && (uncertain || !lastUncertain) {
				t.Fatalf("%+v of %+v keeps %d of those that are uncertain (%v)", keep, backups, kept, uncertain)
			}
			if !uncertain && lastUncertain && kept != len(whole) {
				t.Fatalf("%+v of %+v keeps %d of %d that hold all writes", keep, backups, kept, len(whole))
			}
		}
	}
}

// A cluster that was lost and recreated is backed up by the same schedule.
func TestTheBackupThatHoldsMostOutlivesThoseOfANewCluster(t *testing.T) {
	noon := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	backups := func(revisions ...int64) (all []stored) { // one an hour, the newest first
		for i, revision := range revisions {
			at := noon.Add(-time.Duration(i) * time.Hour)
			all = append(all, stored{key: fmt.Sprint(len(revisions) - i), revision: revision, begun: at, modified: at})
		}
		return all
	}
	for _, c := range []struct {
		name    string
		keep    keeping
		backups []stored
		want    string
	}{
		{"as ever", keeping{newest: 2}, backups(40, 30, 20, 10), "1 2"},
		{"nothing was written", keeping{newest: 2}, backups(40, 40, 40, 40), "1 2"},
		{"the new one is empty", keeping{newest: 2}, backups(2, 1, 1, 40, 30), "1 3"},
		{"of several that hold as much, the newest", keeping{newest: 2}, backups(2, 1, 1, 40, 40), "1 3"},
		{"the new one has come as far", keeping{newest: 2}, backups(40, 2, 1, 40, 30), "1 2 3"},
		{"whatever its age", keeping{newest: 2, age: 150 * time.Minute}, backups(2, 1, 1, 40, 30), "1 3"},
		{"all others are too old at once", keeping{age: 30 * time.Minute}, backups(1, 40, 39), "1"},
		{"its age counts when the new one has come as far", keeping{age: 30 * time.Minute}, backups(40, 40, 39), "1 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, b := range c.keep.surplus(c.backups, c.backups[0].key, noon) {
				got = append(got, b.key)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("deletes %q, want %q", got, c.want)
			}
		})
	}
}

// A new cluster may be at a higher revision from its first backup on. No revision shows then that it is another one.
func TestASchedulesBackupOfAnotherClusterIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 2
			s.Continuous = nil
		})
		defer w.run()()
		w.write(25 * time.Minute)
		w.member.Replace(0xdef, 50_000)
		w.write(45 * time.Minute)
		const reported = "Cluster Changed: the backup comes from the etcd cluster with ID 0000000000000def, and the one before from 0000000000000abc"
		if w.Times(reported) != 1 || w.Times("Cluster Changed") != 1 || w.Times("Revision Lower") != 0 {
			t.Errorf("events %q", w.Events())
		}
	})
}

func TestASchedulesBackupOfAClusterThatWasMadeAnewIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(&api.BackupPolicy{BackupIntervalInSecond: 3600, MaxBackups: 2}))
		w.revision.Store(99)
		defer w.run()()
		pass(time.Minute)
		most := w.store.keys()[0]
		w.revision.Store(0)
		pass(5 * time.Hour)
		const reported = "Revision Lower: etcd is at revision 1, and the backup before holds 100"
		if keys := w.store.keys(); len(keys) != 3 || !slices.Contains(keys, most) || w.Times(reported) != 1 || w.Times("Revision Lower") != 1 {
			t.Errorf("objects %q without %s, events %q", keys, most, w.Events())
		}
	})
}

// The revision alone does not show whether a backup holds what was lost with a former cluster.
func TestABackupOfEachFormerClusterStays(t *testing.T) {
	noon := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	backups := func(clusters string) (all []stored) { // one an hour, the newest first; small letters are uncertain
		for i, c := range clusters {
			at := noon.Add(-time.Duration(i) * time.Hour)
			all = append(all, stored{
				key: fmt.Sprint(len(clusters) - i), revision: int64(len(clusters) - i), begun: at, modified: at,
				uncertain: c >= 'a', cluster: strings.ToUpper(strings.TrimSpace(string(c))),
			})
		}
		return all
	}
	for _, c := range []struct {
		name, clusters string
		keep           keeping
		want           string
	}{
		{"a recreated cluster", "BBBBAAA", keeping{newest: 2}, "1 2 4 5"},
		{"whatever its age", "BBBAA", keeping{age: 90 * time.Minute}, "1 3"},
		{"recreated twice", "CCCBBAA", keeping{newest: 2}, "1 3 5"},
		{"the oldest of many", "EEDCBA", keeping{newest: 1}, "1 5"},
		{"one that holds all writes", "BBBaAA", keeping{newest: 1}, "1 4 5"},
		{"no better one", "BBBbaa", keeping{newest: 1}, "1 4 5"},
		{"nobody knows which cluster", "BBB  ", keeping{newest: 2}, "1 2 3"},
		{"in a full store, the oldest of the new one", "BBBBA", keeping{newest: 4, full: true}, "2"},
		{"only one at once", "DDDDCBA", keeping{newest: 4, full: true}, "4"},
		{"no room at all", "DCBA", keeping{newest: 1, full: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := backups(c.clusters)
			var got []string
			for _, b := range c.keep.surplus(all, all[0].key, noon) {
				got = append(got, b.key)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("deletes %q, want %q", got, c.want)
			}
		})
	}
}

// A base is a backup outside the schedule, which the log of changes needs.
func TestBasesAreCountedApart(t *testing.T) {
	noon := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	backups := func(kinds string) (all []stored) { // one an hour, the newest first: S and B; small letters are uncertain
		for i, kind := range kinds {
			at := noon.Add(-time.Duration(i) * time.Hour)
			all = append(all, stored{
				key: fmt.Sprint(len(kinds) - i), revision: int64(len(kinds) - i), begun: at, modified: at,
				uncertain: kind >= 'a', base: kind == 'B' || kind == 'b',
			})
		}
		return all
	}
	for _, c := range []struct {
		name, kinds string
		keep        keeping
		want        string
	}{
		{"they displace none of the schedule", "BBSBS", keeping{newest: 2}, "2"},
		{"one stays with its neighbours", "SBS", keeping{newest: 2}, ""},
		{"one goes with what is before it", "SSBS", keeping{newest: 2}, "1 2"},
		{"one stays as long as there are fewer on the schedule", "SB", keeping{newest: 2}, ""},
		{"many of a storm", "BBBBSSS", keeping{newest: 2}, "1 4 5"},
		{"only one is kept", "SB", keeping{newest: 1}, "1"},
		{"the newest of the schedule", "BS", keeping{newest: 1}, ""},
		{"whatever its age", "BBSS", keeping{age: 30 * time.Minute}, "1 3"},
		{"their age counts", "SBB", keeping{age: 90 * time.Minute}, "1"},
		{"without a quorum", "bbbBS", keeping{newest: 1}, "3 4"},
		{"uncertain ones of the schedule are counted apart, too", "bsbsS", keeping{newest: 1}, "2 3"},
		{"in a full store, the oldest go", "SBBS", keeping{newest: 3, full: true}, "2"},
		{"all go, and nothing of the schedule", "SBBSS", keeping{newest: 3, full: true}, "3 4"},
		{"after what is too many", "SBSS", keeping{newest: 2, full: true}, "1 3"},
		{"but not the newest: then the oldest of the schedule", "BSS", keeping{newest: 2, full: true}, "1"},
		{"after one gap", "BSSSS", keeping{newest: 4, full: true}, "1"},
		{"after two, the older base is enough", "BBSSSS", keeping{newest: 4, full: true}, "5"},
		{"only one is kept, and a base is newer", "BS", keeping{newest: 1, full: true}, "1"},
		{"as many as are kept", "BSSS", keeping{newest: 4, full: true}, ""},
		{"uncertain ones don't count", "sBSSS", keeping{newest: 4, full: true}, ""},
		{"without a quorum, all of the schedule stay", "BSSSS", keeping{newest: 4, full: true, uncertain: true}, ""},
		{"without a limit, all stay", "SBS", keeping{full: true}, ""},
		{"without a quorum, none that holds all writes", "SBSBS", keeping{newest: 1, full: true, uncertain: true}, ""},
		{"without a quorum, the uncertain ones", "sbSBS", keeping{newest: 1, full: true, uncertain: true}, "4"},
		{"when the quorum is back", "sSSBS", keeping{newest: 1, full: true}, "1 2 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := backups(c.kinds)
			last := all[0].key
			if c.name == "without a quorum" || c.name == "uncertain ones of the schedule are counted apart, too" {
				last = ""
			}
			var got []string
			for _, b := range c.keep.surplus(all, last, noon) {
				got = append(got, b.key)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("deletes %q, want %q", got, c.want)
			}
		})
	}
}

// A mark in the metadata never lets the retention delete more.
func TestTheMarkOfABaseDeletesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8)) // must be repeatable
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moment := func() time.Time { return start.Add(time.Duration(random.IntN(100)) * time.Hour) }
	for range 5000 {
		var marked, plain []stored
		for i := range 1 + random.IntN(12) {
			b := stored{
				key: fmt.Sprint(i), revision: int64(random.IntN(3)), begun: moment(), modified: moment(),
				uncertain: random.IntN(3) == 0, cluster: []string{"", "a", "b"}[random.IntN(3)],
			}
			plain = append(plain, b)
			b.base = random.IntN(2) == 0
			marked = append(marked, b)
		}
		keep := keeping{newest: random.IntN(4), age: time.Duration(random.IntN(50)) * time.Hour}
		last, now := fmt.Sprint(random.IntN(len(plain))), moment()
		before := keep.surplus(plain, last, now)
		for _, b := range keep.surplus(marked, last, now) {
			if !slices.ContainsFunc(before, func(p stored) bool { return p.key == b.key }) {
				t.Fatalf("%+v of %+v deletes %s, and without the marks %+v", keep, marked, b.key, before)
			}
		}
	}
}

func TestBasesDisplaceNoBackupOfTheSchedule(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9)) // must be repeatable
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 5000 {
		var backups []stored
		scheduled, bases := 0, 0
		for i := range 1 + random.IntN(12) {
			at := start.Add(time.Duration(i) * time.Hour)
			b := stored{key: fmt.Sprint(i), revision: int64(i), begun: at, modified: at, base: random.IntN(2) == 0}
			if b.base {
				bases++
			} else {
				scheduled++
			}
			backups = append(backups, b)
		}
		keep := keeping{newest: 1 + random.IntN(4)}
		last := backups[len(backups)-1].key
		surplus := keep.surplus(backups, last, start.Add(100*time.Hour))
		for _, b := range surplus {
			if b.base {
				bases--
			} else {
				scheduled--
			}
		}
		all := 0
		for _, b := range backups {
			if !b.base {
				all++
			}
		}
		if scheduled != min(all, keep.newest) || bases > keep.newest {
			t.Fatalf("%+v of %+v keeps %d of the schedule and %d bases", keep, backups, scheduled, bases)
		}
	}
}

// Attempts that find no room follow each other until there is some.
func TestAFullStoreIsEmptiedNoFurther(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 10)) // must be repeatable
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moment := func() time.Time { return start.Add(time.Duration(random.IntN(100)) * time.Hour) }
	certain := func(backups []stored) int {
		return len(slices.DeleteFunc(slices.Clone(backups), func(b stored) bool { return b.uncertain }))
	}
	for range 5000 {
		var backups []stored
		for i := range 1 + random.IntN(12) {
			backups = append(backups, stored{
				key: fmt.Sprint(i), revision: int64(random.IntN(9)), begun: moment(), modified: moment(),
				uncertain: random.IntN(4) == 0, base: random.IntN(2) == 0, cluster: []string{"", "a", "b"}[random.IntN(3)],
			})
		}
		keep := keeping{newest: random.IntN(5), full: true, uncertain: random.IntN(3) == 0}
		last, now := fmt.Sprint(random.IntN(len(backups))), moment()
		newestFirst := slices.SortedFunc(slices.Values(backups), func(a, b stored) int {
			return cmp.Or(b.time().Compare(a.time()), cmp.Compare(b.revision, a.revision), strings.Compare(b.key, a.key))
		})
		// What stays whatever happens.
		held := append(lastOfFormer(newestFirst, last), newestFirst[0].key, last)
		held = append(held, slices.MaxFunc(newestFirst, func(a, b stored) int { return cmp.Compare(a.revision, b.revision) }).key)
		if i := slices.IndexFunc(newestFirst, func(b stored) bool { return !b.uncertain }); i >= 0 {
			held = append(held, newestFirst[i].key)
		}
		left := slices.Clone(backups)
		for round := 1; ; round++ {
			surplus := keep.surplus(left, last, now)
			ordinary := keeping{newest: keep.newest}.surplus(left, last, now)
			left = slices.DeleteFunc(left, func(b stored) bool { return slices.Contains(surplus, b) })
			if len(surplus) == 0 {
				break
			}
			beyond := 0
			for _, b := range surplus {
				if slices.Contains(held, b.key) || keep.uncertain && !b.uncertain {
					t.Fatalf("%+v of %+v, the last of which is %s, deletes %s in round %d", keep, backups, last, b.key, round)
				}
				if !b.base && !b.uncertain && !slices.Contains(ordinary, b) {
					beyond++
				}
			}
			lastUncertain := slices.ContainsFunc(backups, func(b stored) bool { return b.key == last && b.uncertain })
			if beyond > 1 && !lastUncertain {
				t.Fatalf("%+v of %+v deletes %d of the schedule in round %d: %+v", keep, backups, beyond, round, surplus)
			}
		}
		if got := certain(left); got < min(certain(backups), keep.newest) || keep.newest == 0 && len(left) < len(backups) {
			t.Fatalf("%+v of %+v leaves %d that hold all writes: %+v", keep, backups, got, left)
		}
		if keep.newest == 0 || keep.uncertain || certain(left) <= keep.newest {
			continue
		}
		for _, b := range left {
			if !b.uncertain && !slices.Contains(held, b.key) {
				t.Fatalf("%+v of %+v, the last of which is %s, keeps %s: no attempt would ever find room", keep, backups, last, b.key)
			}
		}
	}
}
