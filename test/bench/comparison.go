// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A comparison is the times of this operator and of another one, in order.
type comparison struct{ rows []*compared }

type compared struct {
	name         string
	ours, theirs []time.Duration
	failure      string // of the other operator
}

func (c *comparison) row(name string) *compared {
	i := slices.IndexFunc(c.rows, func(r *compared) bool { return r.name == name })
	if i < 0 {
		i = len(c.rows)
		c.rows = append(c.rows, &compared{name: name})
	}
	return c.rows[i]
}

// add adds a time of one of the two.
func (c *comparison) add(name string, other bool, took time.Duration) {
	row := c.row(name)
	if other {
		row.theirs = append(row.theirs, took)
	} else {
		row.ours = append(row.ours, took)
	}
}

// fail notes that the other operator did not reach the end of a measurement.
func (c *comparison) fail(name, why string) { c.row(name).failure = why }

// String returns the table in Markdown. The ratio is the other operator's median divided by this
// operator's.
func (c *comparison) String() string {
	var b strings.Builder
	fmt.Fprint(&b, "| what | this operator | the other one | ratio |\n|---|---|---|---|\n")
	for _, row := range c.rows {
		theirs, ratio := span(row.theirs), ""
		switch {
		case row.failure != "":
			theirs = "failed: " + row.failure
		case len(row.ours) > 0 && len(row.theirs) > 0:
			ratio = fmt.Sprintf("%.2f", float64(median(row.theirs))/float64(median(row.ours)))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.name, span(row.ours), theirs, ratio)
	}
	return b.String()
}

// span is the median, and the smallest and the largest time.
func span(times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%s–%s)", seconds(median(times)), seconds(slices.Min(times)), seconds(slices.Max(times)))
}
