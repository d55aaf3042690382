// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"testing"
)

func TestRoutesThatOverlapAreNoticed(t *testing.T) {
	want := netip.MustParsePrefix("10.96.0.0/16")
	for name, c := range map[string]struct{ routes, taken string }{
		"none":             {`[]`, ""},
		"default only":     {`[{"dst":"default","gateway":"192.0.2.1"},{"dst":"192.0.2.0/24"}]`, ""},
		"neighbour":        {`[{"dst":"10.97.0.0/16"}]`, ""},
		"the same":         {`[{"dst":"10.96.0.0/16"}]`, "10.96.0.0/16"},
		"one inside":       {`[{"dst":"10.96.3.0/24"}]`, "10.96.3.0/24"},
		"one host inside":  {`[{"dst":"10.96.3.7"}]`, "10.96.3.7"},
		"one around":       {`[{"dst":"10.0.0.0/8"}]`, "10.0.0.0/8"},
		"one of IPv6":      {`[{"dst":"fe80::1"},{"dst":"fe80::/64"}]`, ""},
		"local, broadcast": {`[{"type":"local","dst":"127.0.0.0/8"},{"type":"broadcast","dst":"192.0.2.255"}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			taken, err := overlapping([]byte(c.routes), want)
			if err != nil || taken != c.taken {
				t.Errorf("got %q, %v, want %q", taken, err, c.taken)
			}
		})
	}
}

func TestLinkAddressesAreLocalAndDiffer(t *testing.T) {
	a, b := mac(netip.MustParseAddr("10.96.64.11")), mac(netip.MustParseAddr("10.96.64.12"))
	if a != "02:00:0a:60:40:0b" || a == b {
		t.Errorf("got %s and %s", a, b)
	}
}
