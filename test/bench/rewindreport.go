// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The project's aim for the restore of a snapshot and its log.
const rewindTarget = 5 * time.Minute

// rewindReport is the measurements of restores of a snapshot and a log after it, in rounds.
type rewindReport struct {
	snapshot, log, events     int64 // bytes, bytes, changes
	value                     int   // bytes of each change
	written, restored, served []time.Duration
	processor                 []time.Duration // until the database is written
	memory, etcd              int64           // peaks, in bytes, of the restoring process and of etcd
}

func (r *rewindReport) add(written, restored, served, processor time.Duration, memory, etcd int64) {
	r.written, r.restored, r.served = append(r.written, written), append(r.restored, restored), append(r.served, served)
	r.processor = append(r.processor, processor)
	r.memory, r.etcd = max(r.memory, memory), max(r.etcd, etcd)
}

// whole returns the time of all parts, of each round.
func (r *rewindReport) whole() []time.Duration {
	list := make([]time.Duration, len(r.written))
	for i := range list {
		list[i] = r.written[i] + r.restored[i] + r.served[i]
	}
	return list
}

// String returns the report in Markdown.
func (r *rewindReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| what, with a snapshot of %s and a log of %d changes of %d bytes (%s) | median | min–max | rounds |\n|---|---|---|---|\n", mebibytes(r.snapshot), r.events, r.value, mebibytes(r.log))
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{
		{"the process writes the database of the log's last revision", r.written},
		{"`etcdutl snapshot restore` of it", r.restored},
		{"start of etcd, until it serves", r.served},
		{"all three", r.whole()},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s–%s | %d |\n", row.name, seconds(median(row.times)), seconds(slices.Min(row.times)), seconds(slices.Max(row.times)), len(row.times))
	}
	whole := median(r.whole())
	fmt.Fprintf(&b, "\n| | measured | target |\n|---|---|---|\n")
	fmt.Fprintf(&b, "| all three | %s | ≤ %s: %s |\n", seconds(whole), seconds(rewindTarget), met(whole <= rewindTarget))
	fmt.Fprintf(&b, "| processor time of the process | %s | |\n", seconds(median(r.processor)))
	fmt.Fprintf(&b, "| memory of the restoring process | %s | ≤ etcd's %s: %s |\n", mebibytes(r.memory), mebibytes(r.etcd), met(r.memory <= r.etcd))
	return b.String()
}
