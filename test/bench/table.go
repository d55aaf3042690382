// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An aim is a time as a multiple of a unit, which the table measures too. The zero value is no
// aim: the time is then a multiple of the first unit.
type aim struct {
	times float64
	unit  string // its letter
}

// A series is one measurement over the rounds.
type series struct {
	name  string
	aim   aim
	times []time.Duration
}

// A table is all measurements, in order. The name of a unit is a letter, a colon and a
// description. The first series is a unit.
type table struct{ rows []*series }

// add adds a time to the series of a name, and creates the series if necessary.
func (t *table) add(name string, target aim, took time.Duration) {
	i := slices.IndexFunc(t.rows, func(s *series) bool { return s.name == name })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &series{name: name, aim: target})
	}
	t.rows[i].times = append(t.rows[i].times, took)
}

// String returns the table in Markdown.
func (t *table) String() string {
	if len(t.rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprint(&b, "| what | median | min–max | rounds | ratio | aim |\n|---|---|---|---|---|---|\n")
	for _, row := range t.rows {
		unit := cmp.Or(row.aim.unit, t.rows[0].unit())
		ratio := float64(median(row.times)) / float64(median(t.ofUnit(unit)))
		fmt.Fprintf(&b, "| %s | %s | %s–%s | %d | %.2f %s | %s |\n", row.name, seconds(median(row.times)),
			seconds(slices.Min(row.times)), seconds(slices.Max(row.times)), len(row.times), ratio, unit, row.aim.verdict(ratio))
	}
	return b.String()
}

// unit returns the letter of a series that is a unit.
func (s *series) unit() string {
	letter, _, _ := strings.Cut(s.name, ":")
	return letter
}

// ofUnit returns the times of a unit.
func (t *table) ofUnit(letter string) []time.Duration {
	for _, row := range t.rows {
		if row.unit() == letter {
			return row.times
		}
	}
	return nil
}

func (a aim) verdict(ratio float64) string {
	switch {
	case a.times == 0:
		return ""
	case ratio <= a.times:
		return fmt.Sprintf("≤ %g %s: met", a.times, a.unit)
	default:
		return fmt.Sprintf("≤ %g %s: missed", a.times, a.unit)
	}
}

// median is the middle value, or the mean of the two in the middle.
func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
