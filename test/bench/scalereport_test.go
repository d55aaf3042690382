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
		{clusters: 5, added: 5, ready: time.Second, starting: 70, rest: restCost{90 * time.Millisecond, 30, base + 5*200<<10}},
		{clusters: 100, added: 95, ready: 9 * time.Second, starting: 1140, rest: restCost{250 * time.Millisecond, 30, base + 100*64<<10}},
		{clusters: 300, added: 200, ready: 20 * time.Second, starting: 2500, rest: restCost{900 * time.Millisecond, 31, base + 300*80<<10}},
	}}
	want := `| clusters | new ones ready after | API requests for each new one | processor time, idle minute | API requests, idle minute | resident memory | for each cluster |
|---|---|---|---|---|---|---|
| 0 | | | 0.06 s | 30 | 50 MiB | |
| 5 | 5: 1.00 s | 14.0 | 0.09 s | 30 | 51 MiB | 200 KiB |
| 100 | 95: 9.00 s | 12.0 | 0.25 s (≤ 0.25 s: met) | 30 | 56 MiB | 64 KiB (≤ 64 KiB: met) |
| 300 | 200: 20.00 s | 12.5 | 0.90 s (≤ 0.75 s: missed) | 31 | 73 MiB | 80 KiB (≤ 64 KiB: missed) |
`
	if got := r.String(); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
}
