// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func fromEnv(t *testing.T, env map[string]string) Instance {
	t.Helper()
	i, err := FromEnv(func(key string) string { return env[key] })
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestDefaultInstanceHasTheUsualNames(t *testing.T) {
	i := fromEnv(t, nil)
	for what, pair := range map[string][2]string{
		"state":       {i.State, "/var/lib/etcd-operator-localkube"},
		"kubeconfig":  {i.Kubeconfig(), "/var/lib/etcd-operator-localkube/kubeconfig"},
		"lock":        {i.Lock(), "/var/lib/etcd-operator-localkube.lock"},
		"API server":  {i.APIServer(), "https://10.96.64.1:6443"},
		"service":     {i.APIService().String(), "10.96.0.1"},
		"services":    {i.Services().String(), "10.96.0.0/18"},
		"pods":        {i.Pods().String(), "10.96.128.0/17"},
		"node":        {i.NodeIP(3).String(), "10.96.64.13"},
		"node's pods": {i.PodCIDR(3).String(), "10.96.131.0/24"},
		"host":        {i.HostIP().String(), "10.96.65.1"},
		"link":        {i.HostLink(), "lk-localkube"},
		"cgroup":      {i.NodeCgroup("node1"), "/etcd-operator-localkube/node1"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
}

func TestAnInstanceOfIPv6HasNoOtherAddress(t *testing.T) {
	i := fromEnv(t, map[string]string{"LOCALKUBE_NETWORK": "fd00:96::/112"})
	for what, pair := range map[string][2]string{
		"API server":  {i.APIServer(), "https://[fd00:96::4001]:6443"},
		"service":     {i.APIService().String(), "fd00:96::1"},
		"services":    {i.Services().String(), "fd00:96::/114"},
		"pods":        {i.Pods().String(), "fd00:96::8000/113"},
		"node":        {i.NodeOnLink(3).String(), "fd00:96::400d/120"},
		"node's pods": {i.PodCIDR(3).String(), "fd00:96::8300/120"},
		"host":        {i.OnUplink(i.HostIP()).String(), "fd00:96::4101/126"},
	} {
		if pair[0] != pair[1] || !i.IPv6() {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
}

func TestAnInstanceOfTwoFamiliesHasBoth(t *testing.T) {
	i := fromEnv(t, map[string]string{"LOCALKUBE_NETWORK": "10.96.0.0/16,fd00:96::/112"})
	for what, pair := range map[string][2]string{
		"API server": {i.APIServer(), "https://10.96.64.1:6443"},
		"services":   {ForStacks(i, Instance.Services), "10.96.0.0/18,fd00:96::/114"},
		"pods":       {ForStacks(i, Instance.Pods), "10.96.128.0/17,fd00:96::8000/113"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
	if i.IPv6() || !i.Stacks()[1].IPv6() {
		t.Error("IPv4 is not the primary family")
	}
	for _, network := range []string{"10.96.0.0/16,10.97.0.0/16", "10.96.0.0/16,", "10.96.0.0/16,fd00:96::/64", ",fd00:96::/112,"} {
		if got, err := FromEnv(func(name string) string { return map[string]string{"LOCALKUBE_NETWORK": network}[name] }); err == nil {
			t.Errorf("%q gives %v", network, got.Stacks())
		}
	}
}

func TestRangesOfOneInstanceDoNotOverlap(t *testing.T) {
	for _, network := range []string{"", "fd00:96::/112"} {
		t.Run(network, func(t *testing.T) { rangesDoNotOverlap(t, fromEnv(t, map[string]string{"LOCALKUBE_NETWORK": network})) })
	}
}

func rangesDoNotOverlap(t *testing.T, i Instance) {
	t.Helper()
	ranges := []netip.Prefix{
		i.Services(),
		i.BridgeOnLink().Masked(),
		i.OnUplink(i.HostIP()).Masked(),
		i.Pods(),
	}
	for a, p := range ranges {
		if !i.Network.Overlaps(p) || p.Bits() <= i.Network.Bits() {
			t.Errorf("%s is not in %s", p, i.Network)
		}
		for _, q := range ranges[a+1:] {
			if p.Overlaps(q) {
				t.Errorf("%s overlaps %s", p, q)
			}
		}
	}
	if last := i.PodCIDR(MaxNodes); !i.Pods().Contains(last.Addr()) {
		t.Errorf("the pods of the last node, %s, are outside of %s", last, i.Pods())
	}
	if !i.BridgeOnLink().Contains(i.NodeIP(MaxNodes)) {
		t.Errorf("the last node, %s, is not on the bridge", i.NodeIP(MaxNodes))
	}
}

func TestInstancesWithOtherNamesShareNothing(t *testing.T) {
	a, b := fromEnv(t, nil), fromEnv(t, map[string]string{"LOCALKUBE_NAME": "other"})
	if a.State == b.State || a.HostLink() == b.HostLink() || a.Cgroup() == b.Cgroup() || a.Network.Overlaps(b.Network) {
		t.Errorf("%+v and %+v share something", a, b)
	}
}

func TestEnvironmentIsChecked(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"name too long for a link": {"LOCALKUBE_NAME": "abcdefghijklm"},
		"name with a slash":        {"LOCALKUBE_NAME": "a/b"},
		"name with a capital":      {"LOCALKUBE_NAME": "Abc"},
		"relative state":           {"LOCALKUBE_STATE": "state"},
		"root as state":            {"LOCALKUBE_STATE": "/../"},
		"state too long":           {"LOCALKUBE_STATE": "/" + strings.Repeat("x", 100)},
		"network too small":        {"LOCALKUBE_NETWORK": "10.1.2.0/24"},
		"network with host bits":   {"LOCALKUBE_NETWORK": "10.1.2.0/16"},
		"too large for version 6":  {"LOCALKUBE_NETWORK": "fd00::/16"},
		"version 4 in version 6":   {"LOCALKUBE_NETWORK": "::ffff:10.96.0.0/112"},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := FromEnv(func(key string) string { return env[key] })
			for variable, value := range env {
				if want := fmt.Sprintf("%s=%q", variable, value); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%+v, error %v, want %q in it", i, err, want)
				}
			}
		})
	}
}

func TestNodeNamesAndNumbers(t *testing.T) {
	for n := 1; n <= MaxNodes; n++ {
		if got, ok := NodeNumber(NodeName(n)); !ok || got != n {
			t.Errorf("node %d: got %d, %v", n, got, ok)
		}
	}
	for _, name := range []string{"", "node", "node0", "node01", "node+1", "node31", "node1/..", "Node1", "1"} {
		if n, ok := NodeNumber(name); ok {
			t.Errorf("%q is taken for node %d", name, n)
		}
	}
	if got := Zone(1) + Zone(2) + Zone(3) + Zone(4); got != "zone-azone-bzone-czone-a" {
		t.Errorf("zones: %s", got)
	}
}
