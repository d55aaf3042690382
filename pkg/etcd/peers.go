// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// activePeers counts the connections of a member to each of its peers. etcd serves it since 3.4.
const activePeers = "etcd_network_active_peers{"

// ConnectedTo reports whether the member has a connection to another one. It reads the metrics on
// the client URL.
func (c *Conn) ConnectedTo(ctx context.Context, id uint64) (bool, error) {
	resp, err := c.get(ctx, "/metrics")
	if err != nil {
		return false, fmt.Errorf("metrics of %s: %w", c.url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("metrics of %s: %s", c.url, resp.Status)
	}
	remote := `Remote="` + FormatID(id) + `"`
	lines := bufio.NewScanner(io.LimitReader(resp.Body, metricsLimit))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if ok && strings.HasPrefix(name, activePeers) && strings.Contains(name, remote) {
			return strings.TrimSpace(value) != "0", nil
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("metrics of %s: %w", c.url, err)
	}
	return false, nil
}
