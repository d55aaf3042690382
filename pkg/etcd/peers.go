// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// activePeers counts the connections of a member to each of its peers. etcd serves it since 3.4.
const activePeers = "etcd_network_active_peers{"

// peerHashLimit bounds the answer of a peer.
const peerHashLimit = 64 << 10

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

// PeerHashKV asks a member for the hash of its keys at a revision, at its peer URL. A learner
// answers that there alone. The member reads its whole database for it. With TLS, a member turns
// away callers whose address is not that of a member.
func PeerHashKV(ctx context.Context, peer Endpoint, revision int64) (Hash, error) {
	hash, err := peerHashKV(ctx, peer, revision)
	if err != nil {
		return Hash{}, fmt.Errorf("hash of %s at revision %d: %w", peer.URL, revision, err)
	}
	return hash, nil
}

func peerHashKV(ctx context.Context, peer Endpoint, revision int64) (Hash, error) {
	u, err := url.Parse(peer.URL)
	if err != nil {
		return Hash{}, err
	}
	body, err := json.Marshal(map[string]int64{"revision": revision})
	if err != nil {
		return Hash{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("members", "hashkv").String(), bytes.NewReader(body))
	if err != nil {
		return Hash{}, err
	}
	address := net.JoinHostPort(cmp.Or(peer.IP, u.Hostname()), u.Port())
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		DisableKeepAlives: true,
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return Hash{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, peerHashLimit))
	if err != nil {
		return Hash{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return Hash{}, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(answer)))
	}
	var sum struct {
		Hash      uint32 `json:"hash"`
		Compacted int64  `json:"compact_revision"`
	}
	if err := json.Unmarshal(answer, &sum); err != nil {
		return Hash{}, err
	}
	return Hash{Sum: sum.Hash, Compacted: sum.Compacted}, nil
}
