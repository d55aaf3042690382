// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"
)

func TestScaleReport(t *testing.T) {
	const base = 50 << 20
	r := scaleReport{none: restCost{60 * time.Millisecond, 30, base}, steps: []scaleStep{
		{clusters: 5, added: 5, ready: time.Second, starting: 70, rest: restCost{90 * time.Millisecond, 30, base + 5*200<<10},
			upgrade:  upgradeCost{took: time.Second, requests: 40, processor: 100 * time.Millisecond, peak: base + 5*400<<10},
			failover: failoverCost{leads: 15 * time.Second, cares: 15 * time.Second, requests: 30},
			deaths:   []time.Duration{time.Second, 2 * time.Second}},
		{clusters: 100, added: 95, ready: 9 * time.Second, starting: 1140, rest: restCost{250 * time.Millisecond, 30, base + 100*64<<10},
			upgrade:  upgradeCost{took: 9 * time.Second, requests: 810, processor: 2 * time.Second, peak: base + 100*128<<10},
			failover: failoverCost{leads: 16 * time.Second, cares: 17500 * time.Millisecond, requests: 470},
			deaths:   []time.Duration{3 * time.Second, time.Second, 2 * time.Second}},
		{clusters: 300, added: 200, ready: 20 * time.Second, starting: 2500, rest: restCost{900 * time.Millisecond, 31, base + 300*80<<10},
			upgrade:  upgradeCost{took: 60 * time.Second, requests: 2430, processor: 6 * time.Second, peak: base + 300*96<<10},
			failover: failoverCost{leads: 20 * time.Second, cares: 23 * time.Second, requests: 1500},
			deaths:   []time.Duration{2 * time.Second}},
	}}
	want := `| clusters | new ones ready after | API requests for each new one | processor time, idle minute | API requests, idle minute | resident memory | for each cluster |
|---|---|---|---|---|---|---|
| 0 | | | 0.06 s | 30 | 50 MiB | |
| 5 | 5: 1.00 s | 14.0 | 0.09 s | 30 | 51 MiB | 200 KiB |
| 100 | 95: 9.00 s | 12.0 | 0.25 s (≤ 0.25 s: met) | 30 | 56 MiB | 64 KiB (≤ 64 KiB: met) |
| 300 | 200: 20.00 s | 12.5 | 0.90 s (≤ 0.75 s: missed) | 31 | 73 MiB | 80 KiB (≤ 64 KiB: missed) |

| clusters | all upgraded after | API requests for each | processor time for each | peak memory | another operator leads after a kill | cares for all after | API requests for each | member of three replaced after |
|---|---|---|---|---|---|---|---|---|
| 5 | 1.00 s (200.0 ms for each) | 8.0 | 20.0 ms | 52 MiB (400 KiB for each) | 15.00 s | 0.00 s more (0.0 ms for each) | 6.0 | 1.50 s (median of 2) |
| 100 | 9.00 s (90.0 ms for each) | 8.1 | 20.0 ms | 62 MiB (128 KiB for each) | 16.00 s | 1.50 s more (15.0 ms for each) | 4.7 | 2.00 s (median of 3) |
| 300 | 60.00 s (200.0 ms for each) | 8.1 | 20.0 ms | 78 MiB (96 KiB for each) | 20.00 s | 3.00 s more (10.0 ms for each) | 5.0 | 2.00 s (median of 1) |
`
	if got := r.String(); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
}
