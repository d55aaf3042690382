// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The project's aims for continuous backups: how much longer than maxLag one of a hundred writes may be
// without a copy, and how much longer one of a hundred puts may take beside the recording.
const (
	lagTarget = time.Second
	putTarget = 1.05
)

// logReport is the measurements of a continuous backup.
type logReport struct {
	rate          int           // puts a second
	lag           time.Duration // spec.continuous.maxLagInSecond
	lags          []time.Duration
	with, without []time.Duration // puts, while a log was recorded and while none was

	segments  int
	bytes     int64
	revisions int64         // that the processor time is for
	processor time.Duration // of the recording process
	memory    int64         // its peak, in bytes
}

// quantile returns the value that a share of the list does not exceed; 0: the list is empty.
func quantile(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func (r *logReport) line() string {
	return fmt.Sprintf("%d writes stored in %d segments; lag p50 %v, p99 %v, most %v; puts p99 with %v, without %v; %s of memory",
		len(r.lags), r.segments, quantile(r.lags, 0.5), quantile(r.lags, 0.99), quantile(r.lags, 1), quantile(r.with, 0.99), quantile(r.without, 0.99), mebibytes(r.memory))
}

// String returns the report in Markdown.
func (r *logReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| what | p50 | p99 | most | number |\n|---|---|---|---|---|\n")
	row := func(name string, list []time.Duration, digits string) {
		fmt.Fprintf(&b, "| %s | "+digits+" | "+digits+" | "+digits+" | %d |\n", name, milliseconds(quantile(list, 0.5)), milliseconds(quantile(list, 0.99)), milliseconds(quantile(list, 1)), len(list))
	}
	row(fmt.Sprintf("from a write to its copy in the store, with `maxLagInSecond: %g`", r.lag.Seconds()), r.lags, "%.0f ms")
	row("a put beside the recording", r.with, "%.1f ms")
	row("a put without it", r.without, "%.1f ms")
	lag, ratio := quantile(r.lags, 0.99), float64(quantile(r.with, 0.99))/float64(max(1, quantile(r.without, 0.99)))
	fmt.Fprintf(&b, "\n| | measured | target |\n|---|---|---|\n")
	fmt.Fprintf(&b, "| p99 from a write to its copy | %s | ≤ %s: %s |\n", seconds(lag), seconds(r.lag+lagTarget), met(lag <= r.lag+lagTarget))
	fmt.Fprintf(&b, "| p99 of a put beside the recording, as a ratio to one without | %.2f | ≤ %.2f: %s |\n", ratio, putTarget, met(ratio <= putTarget))
	fmt.Fprintf(&b, "| size of the segments, for each write of 1 KiB | %d bytes | |\n", r.bytes/max(1, int64(len(r.lags))))
	fmt.Fprintf(&b, "| processor time of the recording process, for 1,000 writes | %.0f ms | |\n", milliseconds(r.processor)*1000/float64(max(1, r.revisions)))
	fmt.Fprintf(&b, "| memory of the recording process | %s | |\n", mebibytes(r.memory))
	return b.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
