// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A summary is what is told of a run.
type summary struct {
	began      time.Time
	struckFor  time.Duration
	seed       uint64
	operations int
	unknown    int // without an answer
	clusters   []availability
	struck     map[string]int // faults by kind
	passed     bool
}

// row is the line about a run in the table of doc/reliability.md.
func (s summary) row() string {
	var shares []string
	var longest availability
	for _, c := range s.clusters {
		shares = append(shares, fmt.Sprintf("%s %.1f %%", c.cluster, 100*c.share))
		if c.gap > longest.gap {
			longest = c
		}
	}
	count := 0
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(s.struck)) {
		count += s.struck[name]
		faults = append(faults, fmt.Sprintf("%s (%d)", name, s.struck[name]))
	}
	result := "no violation"
	if !s.passed {
		result = "**failed**"
	}
	cells := []string{
		s.began.UTC().Format("2006-01-02 15:04"), fmt.Sprintf("%.2f", s.struckFor.Hours()), fmt.Sprint(s.seed),
		thousands(s.operations), thousands(s.unknown), strings.Join(shares, ", "),
		fmt.Sprintf("%.0f s (%s)", longest.gap.Seconds(), longest.cluster),
		fmt.Sprintf("%d: `%s`", count, strings.Join(faults, ", ")), result,
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
