// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A series is one measurement over the rounds.
type series struct {
	name string
	// target is the aim as a multiple of U; 0 where there is none.
	target float64
	times  []time.Duration
}

// A table is all measurements, in order. The first series is the unit, whose name is a letter,
// a colon and a description.
type table struct{ rows []*series }

// add adds a time to the series of a name, and creates the series if necessary.
func (t *table) add(name string, target float64, took time.Duration) {
	i := slices.IndexFunc(t.rows, func(s *series) bool { return s.name == name })
	if i < 0 {
		i = len(t.rows)
		t.rows = append(t.rows, &series{name: name, target: target})
	}
	t.rows[i].times = append(t.rows[i].times, took)
}

// String returns the table in Markdown.
func (t *table) String() string {
	var b strings.Builder
	if len(t.rows) == 0 {
		return ""
	}
	letter, _, _ := strings.Cut(t.rows[0].name, ":")
	fmt.Fprintf(&b, "| what | median | min–max | rounds | ratio to %s | target |\n|---|---|---|---|---|---|\n", letter)
	unit := median(t.rows[0].times)
	for _, row := range t.rows {
		ratio := float64(median(row.times)) / float64(unit)
		fmt.Fprintf(&b, "| %s | %s | %s–%s | %d | %.2f | %s |\n", row.name, seconds(median(row.times)),
			seconds(slices.Min(row.times)), seconds(slices.Max(row.times)), len(row.times), ratio, verdict(ratio, row.target))
	}
	return b.String()
}

func verdict(ratio, target float64) string {
	switch {
	case target == 0:
		return ""
	case ratio <= target:
		return fmt.Sprintf("≤ %g: met", target)
	default:
		return fmt.Sprintf("≤ %g: missed", target)
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
