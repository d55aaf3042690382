// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Metrics are those of a member's metrics that people ask for. A metric that the member
// does not have is 0.
type Metrics struct {
	// WALFsync and Commit are how long writes to the disk have taken, in seconds.
	WALFsync, Commit Histogram
	// CPU is in seconds, Memory in bytes.
	CPU, Memory float64
	// Proposals counts writes that were applied, Pending those under way.
	Proposals, Pending float64
	// Requests counts the calls of clients that were answered.
	Requests float64
	Keys     float64
	Watchers float64
	// Started is when the process started, in seconds since 1970.
	Started float64
}

// Bucket counts the events of at most a duration, in seconds.
type Bucket struct{ Limit, Count float64 }

// Histogram is the buckets of a histogram, by limit.
type Histogram []Bucket

// ParseMetrics reads the text format of Prometheus.
func ParseMetrics(r io.Reader) (*Metrics, error) {
	m := &Metrics{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			continue
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		switch name {
		case "etcd_disk_wal_fsync_duration_seconds_bucket":
			m.WALFsync = append(m.WALFsync, bucket(labels, value))
		case "etcd_disk_backend_commit_duration_seconds_bucket":
			m.Commit = append(m.Commit, bucket(labels, value))
		case "process_cpu_seconds_total":
			m.CPU = value
		case "process_resident_memory_bytes":
			m.Memory = value
		case "process_start_time_seconds":
			m.Started = value
		case "etcd_server_proposals_applied_total":
			m.Proposals = value
		case "etcd_server_proposals_pending":
			m.Pending = value
		case "etcd_debugging_mvcc_keys_total":
			m.Keys = value
		case "etcd_debugging_mvcc_watcher_total":
			m.Watchers = value
		case "grpc_server_handled_total":
			m.Requests += value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, h := range []Histogram{m.WALFsync, m.Commit} {
		slices.SortFunc(h, func(a, b Bucket) int { return cmp.Compare(a.Limit, b.Limit) })
	}
	return m, nil
}

func bucket(labels string, count float64) Bucket {
	_, limit, _ := strings.Cut(labels, `le="`)
	limit, _, _ = strings.Cut(limit, `"`)
	seconds, err := strconv.ParseFloat(limit, 64)
	if err != nil {
		seconds = math.Inf(1)
	}
	return Bucket{Limit: seconds, Count: count}
}

// Since returns the events since an earlier reading of the same process.
func (h Histogram) Since(earlier Histogram) Histogram {
	if len(h) != len(earlier) {
		return h
	}
	since := slices.Clone(h)
	for i := range since {
		since[i].Count -= earlier[i].Count
	}
	return since
}

// Events counts the events.
func (h Histogram) Events() float64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].Count
}

// Quantile estimates a quantile in seconds, as histogram_quantile of Prometheus does. It
// is false where there were no events.
func (h Histogram) Quantile(q float64) (float64, bool) {
	if h.Events() <= 0 {
		return 0, false
	}
	rank := q * h.Events()
	lower, below := 0.0, 0.0
	for _, b := range h {
		if b.Count >= rank {
			if math.IsInf(b.Limit, 1) || b.Count <= below {
				return lower, true
			}
			return lower + (b.Limit-lower)*(rank-below)/(b.Count-below), true
		}
		lower, below = b.Limit, b.Count
	}
	return lower, true
}
