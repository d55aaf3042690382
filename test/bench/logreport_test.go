// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"
)

func TestLogReport(t *testing.T) {
	r := logReport{rate: 1000, lag: 5 * time.Second, segments: 2, bytes: 2200, revisions: 1, processor: time.Millisecond / 10, memory: 40 << 20}
	for i := range 100 {
		r.lags = append(r.lags, time.Duration(100-i)*100*time.Millisecond)
	}
	r.with = []time.Duration{3 * time.Millisecond, 2 * time.Millisecond}
	r.without = []time.Duration{2 * time.Millisecond, 1 * time.Millisecond}
	want := "| what | p50 | p99 | most | number |\n|---|---|---|---|---|\n" +
		"| from a write to its copy in the store, with `maxLagInSecond: 5` | 5100 ms | 10000 ms | 10000 ms | 100 |\n" +
		"| a put beside the recording | 3.0 ms | 3.0 ms | 3.0 ms | 2 |\n" +
		"| a put without it | 2.0 ms | 2.0 ms | 2.0 ms | 2 |\n" + `
| | measured | target |
|---|---|---|
| p99 from a write to its copy | 10.00 s | ≤ 6.00 s: missed |
| p99 of a put beside the recording, as a ratio to one without | 1.50 | ≤ 1.05: missed |
| size of the segments, for each write of 1 KiB | 22 bytes | |
| processor time of the recording process, for 1,000 writes | 100 ms | |
| memory of the recording process | 40 MiB | |
`
	if got := r.String(); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
	if got := quantile(nil, 0.99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestRewindReport(t *testing.T) {
	r := rewindReport{snapshot: 100 << 20, log: 30 << 20, events: 1000, value: 100}
	r.add(2*time.Minute, 10*time.Second, 20*time.Second, time.Minute, 200<<20, 100<<20)
	r.add(5*time.Minute, 20*time.Second, 10*time.Second, time.Minute, 100<<20, 150<<20)
	r.add(3*time.Minute, 30*time.Second, 30*time.Second, time.Minute, 100<<20, 150<<20)
	want := `| what, with a snapshot of 100 MiB and a log of 1000 changes of 100 bytes (30 MiB) | median | min–max | rounds |
|---|---|---|---|
| the process writes the database of the log's last revision | 180.00 s | 120.00 s–300.00 s | 3 |
| ` + "`etcdutl snapshot restore`" + ` of it | 20.00 s | 10.00 s–30.00 s | 3 |
| start of etcd, until it serves | 20.00 s | 10.00 s–30.00 s | 3 |
| all three | 240.00 s | 150.00 s–330.00 s | 3 |

| | measured | target |
|---|---|---|
| all three | 240.00 s | ≤ 300.00 s: met |
| processor time of the process | 60.00 s | |
| memory of the restoring process | 200 MiB | ≤ etcd's 150 MiB: missed |
`
	if got := r.String(); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
}
