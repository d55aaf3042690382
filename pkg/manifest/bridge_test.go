// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func bridged(edit func(*corev1.ServiceSpec)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: "ns"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.7", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Name: "client", Port: 2379}}},
	}
	if edit != nil {
		edit(&svc.Spec)
	}
	return svc
}

func taker() *api.EtcdCluster {
	return &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "uid"}}
}

func bridgeEnds() []BridgeEnd {
	return []BridgeEnd{
		{Pod: "a", UID: "1", Node: "n1", Addresses: []string{"10.1.0.1", "fd00::1"}, Ready: true},
		{Pod: "b", UID: "2", Addresses: []string{"10.1.0.2", "fd00::2"}, Hostname: "old-1"},
		{Pod: "b", UID: "2", Addresses: []string{"10.1.0.2", "fd00::2"}, Hostname: "old-2"},
	}
}

func TestABridgeHasASliceForEachFamily(t *testing.T) {
	built := BuildBridge(taker(), bridged(nil), bridgeEnds())
	if len(built) != 2 || built[0].Name != "old.etcd-bridge.ipv4" || built[1].Name != "old.etcd-bridge.ipv6" || built[0].AddressType != discoveryv1.AddressTypeIPv4 || built[1].AddressType != discoveryv1.AddressTypeIPv6 {
		t.Fatalf("slices %+v", built)
	}
	for i, s := range built {
		want := map[string]string{"app": "etcd", "etcd_cluster": "c", "kubernetes.io/service-name": "old", "endpointslice.kubernetes.io/managed-by": bridgeManager}
		if fmt.Sprint(s.Labels) != fmt.Sprint(want) || !metav1.IsControlledBy(s, taker()) || len(s.Endpoints) != 3 {
			t.Errorf("slice %+v", s)
		}
		a, b := s.Endpoints[0], s.Endpoints[1]
		if !*a.Conditions.Ready || !*a.Conditions.Serving || *a.Conditions.Terminating || *a.NodeName != "n1" || a.Hostname != nil || a.TargetRef.UID != "1" || a.Addresses[0] != bridgeEnds()[0].Addresses[i] {
			t.Errorf("endpoint %+v", a)
		}
		if *b.Conditions.Ready || *b.Conditions.Serving || b.NodeName != nil || *b.Hostname != "old-1" {
			t.Errorf("endpoint %+v", b)
		}
	}
	if back := BridgeEndsOf(built); !SameBridgeEnds(back, bridgeEnds()) {
		t.Errorf("read back, the endpoints are %+v", back)
	}
	headless := BuildBridge(taker(), bridged(func(s *corev1.ServiceSpec) { s.ClusterIP, s.PublishNotReadyAddresses = corev1.ClusterIPNone, true }), bridgeEnds()[1:2])
	if _, marked := headless[0].Labels["service.kubernetes.io/headless"]; !marked || !*headless[0].Endpoints[0].Conditions.Ready || *headless[0].Endpoints[0].Conditions.Serving {
		t.Errorf("a headless Service with addresses that are not ready: %+v", headless[0])
	}
	if none := BuildBridge(taker(), bridged(nil), nil); len(none) != 0 {
		t.Errorf("without an endpoint: %+v", none)
	}
}

func TestPortsOfABridgeLeadToThoseOfMembers(t *testing.T) {
	port := func(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, TargetPort: target, Protocol: corev1.ProtocolTCP}
	}
	number, text := intstr.FromInt32, intstr.FromString
	for name, c := range map[string]struct {
		ports      []corev1.ServicePort
		headless   bool
		want       string
		bridgeable bool
	}{
		"a client port":     {[]corev1.ServicePort{port("client", 2379, number(2379))}, false, "client=2379", true},
		"all ports":         {[]corev1.ServicePort{port("client", 2379, text("client")), port("peer", 2380, text("peer")), port("metrics", 9090, text("metrics"))}, false, "client=2379 peer=2380 metrics=2381", true},
		"another number":    {[]corev1.ServicePort{port("http", 80, number(2379)), port("x", 81, number(2380))}, false, "http=2379 x=2380", true},
		"names of a target": {[]corev1.ServicePort{port("a", 1, text("etcd-client")), port("b", 2, text("server-peer"))}, false, "a=2379 b=2380", true},
		"a single port":     {[]corev1.ServicePort{port("", 80, text("etcd"))}, false, "=2379", true},
		"a sidecar's port":  {[]corev1.ServicePort{port("client", 2379, number(2379)), port("backup", 8080, number(8080))}, false, "client=2379", true},
		"no port of etcd":   {[]corev1.ServicePort{port("a", 8080, number(8080)), port("b", 8081, number(8081))}, false, "", false},
		"UDP":               {[]corev1.ServicePort{{Name: "client", Port: 2379, Protocol: corev1.ProtocolUDP}}, false, "", false},
		"headless, no port": {nil, true, "", true},
	} {
		svc := bridged(func(s *corev1.ServiceSpec) {
			s.Ports = c.ports
			if c.headless {
				s.ClusterIP = corev1.ClusterIPNone
			}
		})
		var got []string
		for _, p := range BuildBridge(taker(), svc, bridgeEnds()[:1])[0].Ports {
			got = append(got, fmt.Sprintf("%s=%d", *p.Name, *p.Port))
		}
		if strings.Join(got, " ") != c.want || Bridgeable(svc) != c.bridgeable {
			t.Errorf("%s: ports %q, want %q; bridgeable: %t", name, got, c.want, Bridgeable(svc))
		}
	}
}

func TestEditsOfABridgeAreTold(t *testing.T) {
	want := BuildBridge(taker(), bridged(nil), bridgeEnds())[0]
	for name, c := range map[string]struct {
		edit   func(*discoveryv1.EndpointSlice)
		edited string
	}{
		"nothing":         {func(*discoveryv1.EndpointSlice) {}, ""},
		"a further label": {func(s *discoveryv1.EndpointSlice) { s.Labels["x"] = "y" }, ""},
		"the Service":     {func(s *discoveryv1.EndpointSlice) { delete(s.Labels, discoveryv1.LabelServiceName) }, "labels"},
		"headless":        {func(s *discoveryv1.EndpointSlice) { s.Labels[corev1.IsHeadlessService] = "" }, "labels"},
		"no owner":        {func(s *discoveryv1.EndpointSlice) { s.OwnerReferences = nil }, "owner"},
		"a port":          {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(1)) }, "ports"},
		"an address":      {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.1.0.9" }, "endpoints"},
	} {
		live := want.DeepCopy()
		c.edit(live)
		mended, edited := UpdatedBridge(live, want)
		if edited != c.edited {
			t.Errorf("%s: %q, want %q", name, edited, c.edited)
		}
		if _, again := UpdatedBridge(mended, want); again != "" {
			t.Errorf("%s: after the correction, %q differs", name, again)
		}
	}
}

func TestAPodHasOneAddressOfEachFamily(t *testing.T) {
	p := PodState{IPs: []string{"fd00::1", "10.1.0.1"}}
	for _, c := range []struct {
		families []corev1.IPFamily
		want     []string
	}{
		{BridgeFamilies, []string{"10.1.0.1", "fd00::1"}},
		{[]corev1.IPFamily{corev1.IPv6Protocol}, []string{"fd00::1"}},
		{nil, nil},
	} {
		if got := p.AddressesOf(c.families); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.families, got, c.want)
		}
	}
}
