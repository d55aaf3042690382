// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"math"
	"strings"
	"testing"
)

const scrape = `# HELP etcd_disk_wal_fsync_duration_seconds The latency distributions of fsync called by WAL.
# TYPE etcd_disk_wal_fsync_duration_seconds histogram
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} 90
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.002"} 98
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.004"} 100
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 100
etcd_disk_wal_fsync_duration_seconds_sum 0.09
etcd_disk_wal_fsync_duration_seconds_count 100
grpc_server_handled_total{grpc_code="OK",grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 7
grpc_server_handled_total{grpc_code="OK",grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 5
process_resident_memory_bytes 4.2e+07
process_start_time_seconds 1.7e+09
no number here
`

func TestMetricsAreRead(t *testing.T) {
	m, err := ParseMetrics(strings.NewReader(scrape))
	if err != nil {
		t.Fatal(err)
	}
	if m.Requests != 12 || m.Memory != 4.2e7 || m.Started != 1.7e9 {
		t.Errorf("read %+v", m)
	}
	p99, ok := m.WALFsync.Quantile(0.99)
	if want := 0.003; !ok || math.Abs(p99-want) > 1e-9 {
		t.Errorf("p99 is %v, %v; want %v", p99, ok, want)
	}
	if _, ok := m.Commit.Quantile(0.99); ok {
		t.Error("a histogram without buckets has a quantile")
	}
}

func TestAQuantileBeyondTheLastLimitIsThatLimit(t *testing.T) {
	h := Histogram{{0.001, 1}, {8, 2}, {math.Inf(1), 100}}
	if p99, ok := h.Quantile(0.99); !ok || p99 != 8 {
		t.Errorf("p99 is %v, %v", p99, ok)
	}
}

func TestEventsSinceAnEarlierReading(t *testing.T) {
	before := Histogram{{0.001, 100}, {0.1, 100}, {math.Inf(1), 100}}
	now := Histogram{{0.001, 100}, {0.1, 110}, {math.Inf(1), 110}}
	if p99, _ := now.Since(before).Quantile(0.99); p99 < 0.09 {
		t.Errorf("p99 is %v: the fast writes of the past count", p99)
	}
	if _, ok := now.Since(now).Quantile(0.99); ok {
		t.Error("nothing was written, and there is a quantile")
	}
}
