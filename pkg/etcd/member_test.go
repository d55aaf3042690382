// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"maps"
	"testing"
)

func TestHostOfAnyMember(t *testing.T) {
	for want, m := range map[string]Member{
		"a.c.ns.svc": {PeerURLs: []string{"http://a.c.ns.svc:2380", "http://other:2380"}},
		"10.0.0.1":   {PeerURLs: []string{"https://10.0.0.1:2380"}},
		"nodash":     {PeerURLs: []string{"http://nodash"}},
	} {
		if got := m.Host(); got != want {
			t.Errorf("host of %v is %q, want %q", m.PeerURLs, got, want)
		}
	}
	for _, m := range []Member{{}, {PeerURLs: []string{""}}, {PeerURLs: []string{"http://%zz"}}, {PeerURLs: []string{"no url"}}} {
		if got := m.Host(); got != "" {
			t.Errorf("host of %q is %q, want none", m.PeerURLs, got)
		}
	}
}

func TestInitialClusterRoundTrip(t *testing.T) {
	ic := InitialCluster{"http://b:2380": "b", "http://a:2380": "a"}
	if got, want := ic.String(), "a=http://a:2380,b=http://b:2380"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if back := ParseInitialCluster(ic.String()); !maps.Equal(back, ic) {
		t.Errorf("read back as %v", back)
	}
	if odd := ParseInitialCluster("nonsense,,x"); len(odd) != 0 {
		t.Errorf("nonsense was read as %v", odd)
	}
}

func TestQuorum(t *testing.T) {
	for voters, want := range []int{1, 1, 2, 2, 3, 3, 4, 4} {
		if got := Quorum(voters); got != want {
			t.Errorf("quorum of %d voters is %d, want %d", voters, got, want)
		}
	}
}
