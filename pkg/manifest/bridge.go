// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// bridgeManager keeps Kubernetes' controllers away from the operator's EndpointSlices
// (endpointslice.kubernetes.io/managed-by). They leave alone what others manage.
const bridgeManager = "operator.etcd.database.coreos.com"

// BridgeEnd is an endpoint by which a Service of somebody else leads to a member.
type BridgeEnd struct {
	Pod       string
	UID       types.UID
	Node      string
	Addresses []string // at most one of each family, IPv4 first
	Ready     bool
	Hostname  string
}

// CompareBridgeEnds orders the endpoints of a Service.
func CompareBridgeEnds(a, b BridgeEnd) int {
	return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Hostname, b.Hostname))
}

// SameBridgeEnds reports whether two lists in order are equal.
func SameBridgeEnds(a, b []BridgeEnd) bool {
	return slices.EqualFunc(a, b, func(a, b BridgeEnd) bool {
		return a.Pod == b.Pod && a.UID == b.UID && a.Node == b.Node && a.Ready == b.Ready && a.Hostname == b.Hostname && slices.Equal(a.Addresses, b.Addresses)
	})
}

// BridgeFamilies are the families of which a slice may exist.
var BridgeFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}

// AddressesOf returns the pod's address of each family, in the order of BridgeFamilies.
func (p PodState) AddressesOf(families []corev1.IPFamily) (addresses []string) {
	for _, family := range BridgeFamilies {
		if i := slices.IndexFunc(p.IPs, func(ip string) bool { return familyOf(ip) == family }); i >= 0 && slices.Contains(families, family) {
			addresses = append(addresses, p.IPs[i])
		}
	}
	return addresses
}

func familyOf(address string) corev1.IPFamily {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// BridgeName is the name of a slice. It does not depend on the EtcdCluster, so that the API server
// lets one of two have the Service: they hold different data. Names of Services contain no dots.
func BridgeName(service string, family corev1.IPFamily) string {
	return service + ".etcd-bridge." + strings.ToLower(string(family))
}

// BuildBridge builds the EndpointSlices by which a Service of somebody else leads to members: one
// for each family with an address.
func BuildBridge(obj *api.EtcdCluster, svc *corev1.Service, ends []BridgeEnd) (built []*discoveryv1.EndpointSlice) {
	labels := NamesOf(obj).Labels()
	labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy] = svc.Name, bridgeManager
	if Headless(svc) {
		labels[corev1.IsHeadlessService] = "" // kube-proxy has no use for the slice
	}
	for _, family := range BridgeFamilies {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: BridgeName(svc.Name, family), Namespace: obj.Namespace,
				Labels: maps.Clone(labels), OwnerReferences: []metav1.OwnerReference{OwnerOf(obj)},
			},
			AddressType: discoveryv1.AddressType(family),
			Ports:       bridgePorts(svc),
		}
		for _, end := range ends {
			if i := slices.IndexFunc(end.Addresses, func(ip string) bool { return familyOf(ip) == family }); i >= 0 {
				slice.Endpoints = append(slice.Endpoints, end.endpoint(obj.Namespace, svc, end.Addresses[i]))
			}
		}
		if len(slice.Endpoints) > 0 {
			built = append(built, slice)
		}
	}
	return built
}

// Headless reports whether a Service has no address of its own.
func Headless(svc *corev1.Service) bool { return svc.Spec.ClusterIP == corev1.ClusterIPNone }

// endpoint has the conditions that Kubernetes' own controller would set.
func (e BridgeEnd) endpoint(namespace string, svc *corev1.Service, address string) discoveryv1.Endpoint {
	ready := e.Ready || svc.Spec.PublishNotReadyAddresses
	endpoint := discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &e.Ready, Terminating: new(false)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: e.Pod, UID: e.UID},
	}
	if e.Node != "" {
		endpoint.NodeName = &e.Node
	}
	if e.Hostname != "" {
		endpoint.Hostname = &e.Hostname
	}
	return endpoint
}

// bridgePorts are the ports of the Service, with the numbers that members listen on.
func bridgePorts(svc *corev1.Service) (ports []discoveryv1.EndpointPort) {
	for _, p := range svc.Spec.Ports {
		if number := memberPort(svc, p); number != 0 {
			ports = append(ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(corev1.ProtocolTCP), Port: &number, AppProtocol: p.AppProtocol})
		}
	}
	return ports
}

// Bridgeable reports whether a Service can lead to members. A headless one needs no port.
func Bridgeable(svc *corev1.Service) bool {
	return len(bridgePorts(svc)) > 0 || Headless(svc) && len(svc.Spec.Ports) == 0
}

// memberPort returns which port of a member serves what a port of the Service is for; 0: none
// does. The numbers are those of every etcd. Names are those that charts and operators use.
func memberPort(svc *corev1.Service, p corev1.ServicePort) int32 {
	if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
		return 0
	}
	target := p.Port
	if p.TargetPort.Type == intstr.Int && p.TargetPort.IntVal != 0 {
		target = p.TargetPort.IntVal
	}
	names := p.Name + " " + p.TargetPort.StrVal
	for _, known := range []struct {
		name string
		port int32
	}{{"client", ClientPort}, {"peer", peerPort}, {"metrics", MetricsPort}} {
		if target == known.port || strings.Contains(names, known.name) {
			return known.port
		}
	}
	if len(svc.Spec.Ports) == 1 {
		return ClientPort
	}
	return 0
}

// BridgeEndsOf returns where the slices of a Service lead, in order.
func BridgeEndsOf(live []*discoveryv1.EndpointSlice) []BridgeEnd {
	var ends []BridgeEnd
	for _, family := range BridgeFamilies {
		for _, s := range live {
			if s.AddressType != discoveryv1.AddressType(family) {
				continue
			}
			for _, e := range s.Endpoints {
				end := bridgeEndOf(e)
				i := slices.IndexFunc(ends, func(known BridgeEnd) bool { return known.UID == end.UID && known.Hostname == end.Hostname })
				if i >= 0 && family != corev1.IPv4Protocol {
					ends[i].Addresses = append(ends[i].Addresses, end.Addresses...)
					continue
				}
				ends = append(ends, end)
			}
		}
	}
	slices.SortStableFunc(ends, CompareBridgeEnds)
	return ends
}

func bridgeEndOf(e discoveryv1.Endpoint) BridgeEnd {
	end := BridgeEnd{Addresses: slices.Clone(e.Addresses)}
	if e.TargetRef != nil {
		end.Pod, end.UID = e.TargetRef.Name, e.TargetRef.UID
	}
	if e.NodeName != nil {
		end.Node = *e.NodeName
	}
	if e.Hostname != nil {
		end.Hostname = *e.Hostname
	}
	end.Ready = e.Conditions.Serving != nil && *e.Conditions.Serving
	return end
}

// UpdatedBridge returns a live slice with the operator's fields of want, and says what differs;
// nothing if there is no difference. It keeps further labels and annotations.
func UpdatedBridge(live, want *discoveryv1.EndpointSlice) (mended *discoveryv1.EndpointSlice, edited string) {
	mended = live.DeepCopy()
	var changed differences
	mendMeta(&mended.ObjectMeta, want)
	if _, headless := want.Labels[corev1.IsHeadlessService]; !headless {
		delete(mended.Labels, corev1.IsHeadlessService)
	}
	changed.note("labels", maps.Equal(live.Labels, mended.Labels))
	changed.note("owner", equality.Semantic.DeepEqual(live.OwnerReferences, mended.OwnerReferences))
	mended.Endpoints, mended.Ports = want.Endpoints, want.Ports
	changed.note("ports", equality.Semantic.DeepEqual(live.Ports, mended.Ports))
	changed.note("endpoints", equality.Semantic.DeepEqual(live.Endpoints, mended.Endpoints))
	return mended, strings.Join(changed, ", ")
}
