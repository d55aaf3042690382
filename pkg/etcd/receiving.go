// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// etcd serves these as soon as its process runs. A member answers nothing else meanwhile, for minutes or hours
// if the database is large.
const (
	// receiveInflights counts the snapshots that a member is receiving, by sender. It exists since 3.4.
	receiveInflights = "etcd_network_snapshot_receive_inflights_total"
	// defragInflight is 1 while a member defragments its database: it copies it to another file. It exists since
	// 3.4.18 and 3.5.1.
	defragInflight = "etcd_disk_defrag_inflight"
)

// metricsLimit bounds how much of a member's metrics is read. They have some 100 KiB.
const metricsLimit = 4 << 20

// CopiesDatabase reports whether the member with this metrics listener is receiving a copy
// of the database, or defragments its own.
func CopiesDatabase(ctx context.Context, address string) (bool, error) {
	body, err := openMetrics(ctx, address)
	if err != nil {
		return false, fmt.Errorf("metrics of %s: %w", address, err)
	}
	defer body.Close()
	lines := bufio.NewScanner(io.LimitReader(body, metricsLimit))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || name != defragInflight && name != receiveInflights && !strings.HasPrefix(name, receiveInflights+"{") {
			continue
		}
		if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && n > 0 {
			return true, nil
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("metrics of %s: %w", address, err)
	}
	return false, nil
}
