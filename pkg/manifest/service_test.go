// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestServicesKeepTheNamesThatScriptsKnow(t *testing.T) {
	peer, client := BuildPeerService(testCluster()), BuildClientService(testCluster())
	if peer.Name != "c" || client.Name != "c-client" {
		t.Errorf("the Services are %s and %s", peer.Name, client.Name)
	}
	if peer.Spec.ClusterIP != corev1.ClusterIPNone || client.Spec.ClusterIP != "" {
		t.Errorf("ClusterIP %q and %q", peer.Spec.ClusterIP, client.Spec.ClusterIP)
	}
	if !peer.Spec.PublishNotReadyAddresses {
		t.Error("the peer Service hides members that are not ready: they never find each other")
	}
	if client.Spec.PublishNotReadyAddresses {
		t.Error("the client Service leads to members that are not ready")
	}
	for want, svc := range map[string]*corev1.Service{"[2379 2380]": peer, "[2379]": client} {
		var ports []int32
		for _, p := range svc.Spec.Ports {
			ports = append(ports, p.Port)
			if p.Port != p.TargetPort.IntVal {
				t.Errorf("%s: port %d leads to %s", svc.Name, p.Port, p.TargetPort.String())
			}
		}
		if fmt.Sprint(ports) != want {
			t.Errorf("%s: ports %v, want %s", svc.Name, ports, want)
		}
		labels := map[string]string{"app": "etcd", "etcd_cluster": "c"}
		if !maps.Equal(svc.Spec.Selector, labels) || !maps.Equal(svc.Labels, labels) {
			t.Errorf("%s: selector %v, labels %v, want %v", svc.Name, svc.Spec.Selector, svc.Labels, labels)
		}
	}
}

// Members know each other by one address, and clients may use either family.
func TestOnlyNewClientServicesHaveBothFamilies(t *testing.T) {
	if got := BuildPeerService(testCluster()).Spec.IPFamilyPolicy; got != nil {
		t.Errorf("the peer Service has the policy %s", *got)
	}
	want := BuildClientService(testCluster())
	if got := ptr.Deref(want.Spec.IPFamilyPolicy, ""); got != corev1.IPFamilyPolicyPreferDualStack {
		t.Errorf("the client Service has the policy %q", got)
	}
	live := want.DeepCopy()
	live.Spec.IPFamilyPolicy, live.Spec.IPFamilies = ptr.To(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{corev1.IPv4Protocol}
	if mended, edited := UpdatedService(live, want); edited != "" || *mended.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		t.Errorf("%q of an existing Service changes: %+v", edited, mended.Spec)
	}
}
