// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The project's aims: memory, and throughput as a ratio to the slower half of a backup.
const (
	ratioTarget  = 0.9
	memoryTarget = 64 << 20
)

// backupReport is the measurements of backups, in rounds.
type backupReport struct {
	size                  int64 // of the snapshot, in bytes
	saved, copied, backed []time.Duration
	processor             []time.Duration // of the backing process
	idle, peak            int64           // memory, in bytes
}

func (r *backupReport) add(saved, copied, backed, processor time.Duration) {
	r.saved, r.copied = append(r.saved, saved), append(r.copied, copied)
	r.backed, r.processor = append(r.backed, backed), append(r.processor, processor)
}

// ratio returns the backup's throughput relative to the slower half.
func (r *backupReport) ratio() float64 {
	return float64(max(median(r.saved), median(r.copied))) / float64(median(r.backed))
}

// ratios returns the ratio of each round.
func (r *backupReport) ratios() []float64 {
	list := make([]float64, len(r.backed))
	for i := range list {
		list[i] = float64(max(r.saved[i], r.copied[i])) / float64(r.backed[i])
	}
	return list
}

// String returns the report in Markdown.
func (r *backupReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| what, with a snapshot of %s | median | min–max | rounds | throughput |\n|---|---|---|---|---|\n", mebibytes(r.size))
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{
		{"`etcdctl snapshot save` to a file", r.saved},
		{"copy of that file into MinIO, by one request", r.copied},
		{"backup from etcd to MinIO", r.backed},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s–%s | %d | %s/s |\n", row.name, seconds(median(row.times)), seconds(slices.Min(row.times)),
			seconds(slices.Max(row.times)), len(row.times), mebibytes(int64(float64(r.size)/median(row.times).Seconds())))
	}
	ratios := r.ratios()
	fmt.Fprintf(&b, "\n| | measured | target |\n|---|---|---|\n")
	fmt.Fprintf(&b, "| throughput of the backup, as a ratio to the slower of the two | %.2f (in the rounds %.2f–%.2f) | ≥ %g: %s |\n",
		r.ratio(), slices.Min(ratios), slices.Max(ratios), ratioTarget, met(r.ratio() >= ratioTarget))
	fmt.Fprintf(&b, "| processor time of the backing process, for each GiB | %s | |\n",
		seconds(time.Duration(float64(median(r.processor))*(1<<30)/float64(r.size))))
	fmt.Fprintf(&b, "| peak resident memory of the backing process above idle (%s) | %s | ≤ %s: %s |\n",
		mebibytes(r.idle), mebibytes(r.peak-r.idle), mebibytes(memoryTarget), met(r.peak-r.idle <= memoryTarget))
	return b.String()
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "missed"
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
