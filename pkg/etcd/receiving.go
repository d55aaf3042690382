// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// receiveInflights counts the snapshots that a member is receiving now, by who sends them.
// etcd serves it from 3.4 on, as soon as its process runs; a member that waits for a
// snapshot answers nothing else.
const receiveInflights = "etcd_network_snapshot_receive_inflights_total"

// metricsLimit bounds what is read of a member's metrics, which are some 100 KiB.
const metricsLimit = 4 << 20

// ReceivesSnapshot reports whether the member whose metrics listener is at an address
// receives a copy of the database at this moment.
func ReceivesSnapshot(ctx context.Context, address string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return false, fmt.Errorf("metrics of %s: %w", address, err)
	}
	transport := &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false, fmt.Errorf("metrics of %s: %w", address, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("metrics of %s: %s", address, resp.Status)
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, metricsLimit))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || name != receiveInflights && !strings.HasPrefix(name, receiveInflights+"{") {
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
