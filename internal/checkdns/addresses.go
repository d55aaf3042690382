// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// parseAddress reads HOST=IP.
func parseAddress(s string) (host string, ip netip.Addr, err error) {
	host, text, ok := strings.Cut(s, "=")
	if !ok || host == "" {
		return "", netip.Addr{}, fmt.Errorf("%q is not of the form host=address", s)
	}
	if ip, err = netip.ParseAddr(text); err != nil {
		return "", netip.Addr{}, fmt.Errorf("address of %s: %w", host, err)
	}
	return host, ip, nil
}

// knownPeers is the configuration with the peers whose addresses are known alone, for some
// time: a name that is looked up before it is published stays unknown for up to 30 s. After
// that time a known address may be that of another pod, and all peers are asked by name.
func (cfg Config) knownPeers(elapsed time.Duration) Config {
	known := slices.DeleteFunc(slices.Clone(cfg.Peers), func(peer string) bool {
		u, err := url.Parse(peer)
		return err != nil || !cfg.Addresses[u.Hostname()].IsValid()
	})
	if len(known) == 0 {
		return cfg
	}
	if elapsed > trust {
		cfg.Addresses = nil
		return cfg
	}
	cfg.asked = known
	return cfg
}

type addressesKey struct{}

// withAddresses hands known addresses to the dialer.
func withAddresses(ctx context.Context, addresses map[string]netip.Addr) context.Context {
	return context.WithValue(ctx, addressesKey{}, addresses)
}

func addressesOf(ctx context.Context) map[string]netip.Addr {
	addresses, _ := ctx.Value(addressesKey{}).(map[string]netip.Addr)
	return addresses
}

// dialKnown dials a host at its known address, if there is one.
func dialKnown(dialer *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(addr); err == nil && addressesOf(ctx)[host].IsValid() {
			addr = net.JoinHostPort(addressesOf(ctx)[host].String(), port)
		}
		return dialer.DialContext(ctx, network, addr)
	}
}
