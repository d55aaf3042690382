// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"
)

func TestBackupReport(t *testing.T) {
	r := backupReport{size: 100 << 20, idle: 20 << 20, peak: 90 << 20}
	r.add(2*time.Second, 1*time.Second, 3*time.Second, time.Second/2)
	r.add(4*time.Second, 2*time.Second, 4*time.Second, time.Second)
	r.add(3*time.Second, 5*time.Second, 5*time.Second, time.Second/4)
	want := `| what, with a snapshot of 100 MiB | median | min–max | rounds | throughput |
|---|---|---|---|---|
| ` + "`etcdctl snapshot save`" + ` to a file | 3.00 s | 2.00 s–4.00 s | 3 | 33 MiB/s |
| copy of that file into MinIO, by one request | 2.00 s | 1.00 s–5.00 s | 3 | 50 MiB/s |
| backup from etcd to MinIO | 4.00 s | 3.00 s–5.00 s | 3 | 25 MiB/s |

| | measured | target |
|---|---|---|
| throughput of the backup, as a ratio to the slower of the two | 0.75 (in the rounds 0.67–1.00) | ≥ 0.9: missed |
| processor time of the backing process, for each GiB | 5.12 s | |
| peak resident memory of the backing process above idle (20 MiB) | 70 MiB | ≤ 64 MiB: missed |
`
	if got := r.String(); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
	if fast := (&backupReport{size: 1, saved: []time.Duration{10}, copied: []time.Duration{9}, backed: []time.Duration{10}}); fast.ratio() != 1 {
		t.Errorf("ratio %v of what takes as long as the slower half, want 1", fast.ratio())
	}
}
