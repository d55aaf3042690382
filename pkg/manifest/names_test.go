// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// Names in DNS have no case. Earlier operators took a cluster domain in capitals, and the members' URLs keep it.
func TestAMemberIsFoundByItsHost(t *testing.T) {
	n := Names{Namespace: "ns", Cluster: "c", ClusterDomain: ".cluster.local"}
	for host, want := range map[string]string{
		"c-x.c.ns.svc.cluster.local":   "c-x",
		"c-x.c.ns.svc.Cluster.Local":   "c-x",
		".c.ns.svc.cluster.local":      "",
		"a.c-x.c.ns.svc.cluster.local": "",
		"c-x.c.ns.svc":                 "",
		"c-x.d.ns.svc.cluster.local":   "",
	} {
		if got := n.MemberAt(host); got != want {
			t.Errorf("%s: the member is %q, want %q", host, got, want)
		}
	}
}
