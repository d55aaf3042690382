// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// seedPod returns the pod of the first member of a new cluster.
func (o *Observation) seedPod(name string) manifest.MemberPod {
	return manifest.MemberPod{
		Name: name, Version: o.Spec.EffectiveVersion(), Seed: true, Source: o.Source,
		InitialCluster: etcd.InitialCluster{o.Names.PeerURL(name): name}, Volume: o.Spec.Persistent(),
	}
}

// followers returns the pods of the members that join after a seed. They wait in check-dns until the
// seed serves and the operator adds them.
func (o *Observation) followers(seed string) []manifest.MemberPod {
	if !o.Gate {
		return nil
	}
	alone := *o
	alone.Members, alone.Pods = nil, slices.DeleteFunc(slices.Clone(o.Pods), func(p manifest.PodState) bool { return p.Name != seed })
	base := append([]string{seed}, o.plannedNames()...)
	missing := o.Spec.Size - len(base)
	for _, p := range o.Pods {
		if o.ended(p) {
			missing-- // it stays until the seed serves
		}
	}
	return alone.joinPods(base, missing, o.Spec.EffectiveVersion())
}

// addresses returns the addresses of the members that serve or are about to, by host name.
func (o *Observation) addresses() map[string]string {
	addresses := map[string]string{}
	for _, p := range o.Pods {
		if p.IP != "" && !p.Deleting && !p.Finished && (p.Seed || p.Running) {
			addresses[o.Names.Host(p.Name)] = p.IP
		}
	}
	return addresses
}

// joinPods returns n new pods that join one after the other, after the members and those in
// base. They must not join together. An etcd that joins first asks all members for their
// versions. Two that wait for each other's answer lose seven seconds (etcd's bootstrap
// timeout).
func (o *Observation) joinPods(base []string, n int, version string) []manifest.MemberPod {
	var pods []manifest.MemberPod
	addresses := o.addresses()
	for _, name := range o.NewNames[:max(0, min(n, len(o.NewNames)))] {
		base = append(base, name)
		pods = append(pods, manifest.MemberPod{
			Name: name, Version: version, InitialCluster: o.initialCluster(base), Addresses: addresses,
			Reach: o.formerPeers(), Volume: o.Spec.Persistent(),
		})
	}
	return pods
}
