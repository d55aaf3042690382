// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// OwnAnnotations on a Service lists the keys of the annotations from the spec. The operator
// removes those that the spec no longer has, and keeps others.
const OwnAnnotations = api.OperatorAnnotations + "annotations-from-spec"

// BuildPeerService builds the headless Service that gives each member its DNS name. Members
// need their names before they can become ready.
func BuildPeerService(obj *api.EtcdCluster) *corev1.Service {
	svc := buildService(obj, NamesOf(obj).peerService(), ServicePort("client", ClientPort), ServicePort("peer", peerPort))
	svc.Spec.ClusterIP = corev1.ClusterIPNone
	svc.Spec.PublishNotReadyAddresses = true
	return svc
}

// BuildClientService builds the Service for clients, which leads only to ready members. A new
// one has an address of each family that the network has. Existing ones keep their families.
func BuildClientService(obj *api.EtcdCluster) *corev1.Service {
	svc := buildService(obj, NamesOf(obj).clientService(), ServicePort("client", ClientPort))
	svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
	policy := obj.Spec.Service
	if policy == nil {
		return svc
	}
	selector := maps.Clone(policy.Selector)
	if selector == nil {
		selector = map[string]string{}
	}
	maps.Copy(selector, svc.Spec.Selector) // never to another cluster's pods
	svc.Spec.Selector = selector
	if len(policy.Annotations) > 0 {
		svc.Annotations = maps.Clone(policy.Annotations)
		svc.Annotations[OwnAnnotations] = strings.Join(slices.Sorted(maps.Keys(policy.Annotations)), ",")
	}
	return svc
}

func buildService(obj *api.EtcdCluster, name string, ports ...corev1.ServicePort) *corev1.Service {
	n := NamesOf(obj)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       obj.Namespace,
			Labels:          n.Labels(),
			OwnerReferences: []metav1.OwnerReference{OwnerOf(obj)},
		},
		Spec: corev1.ServiceSpec{Selector: n.Labels(), Ports: ports},
	}
}

// ServicePort is a port of a Service that the pods have too.
func ServicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}
}

// UpdatedService returns live with the operator's fields of want, and says what differed;
// nothing if there is no difference. It keeps what others write: further labels and
// annotations, node ports, addresses, and the type NodePort or LoadBalancer.
func UpdatedService(live, want *corev1.Service) (mended *corev1.Service, edited string) {
	mended = live.DeepCopy()
	var changed differences
	mendMeta(&mended.ObjectMeta, want)
	mendAnnotations(mended, want)
	changed.note("labels", maps.Equal(live.Labels, mended.Labels))
	changed.note("annotations", maps.Equal(live.Annotations, mended.Annotations))
	changed.note("owner", equality.Semantic.DeepEqual(live.OwnerReferences, mended.OwnerReferences))

	if !ofFork(live, want) {
		mended.Spec.Selector = want.Spec.Selector
	}
	changed.note("selector", maps.Equal(live.Spec.Selector, mended.Spec.Selector))
	mended.Spec.Ports = mendedPorts(live.Spec.Ports, want.Spec.Ports)
	changed.note("ports", equality.Semantic.DeepEqual(live.Spec.Ports, mended.Spec.Ports))
	mended.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	changed.note("publishNotReadyAddresses", live.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses)
	if live.Spec.Type == corev1.ServiceTypeExternalName { // it leads away from the members
		mended.Spec.Type, mended.Spec.ExternalName = corev1.ServiceTypeClusterIP, ""
		changed.note("type", false)
	}
	return mended, strings.Join(changed, ", ")
}

// NeedsRemaking reports whether a Service differs in an immutable field: only a headless
// Service gives the members their names.
func NeedsRemaking(live, want *corev1.Service) bool {
	return want.Spec.ClusterIP == corev1.ClusterIPNone && live.Spec.ClusterIP != corev1.ClusterIPNone
}

// mendMeta gives an object the desired labels and controller. Other owners stay, unless they
// claim to be the controller.
func mendMeta(live *metav1.ObjectMeta, want metav1.Object) {
	if live.Labels == nil {
		live.Labels = map[string]string{}
	}
	maps.Copy(live.Labels, want.GetLabels())
	owner := want.GetOwnerReferences()[0]
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil && ref.UID == owner.UID {
		return
	}
	others := slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.UID || ref.Controller != nil && *ref.Controller
	})
	live.OwnerReferences = append([]metav1.OwnerReference{owner}, others...)
}

func mendAnnotations(live, want *corev1.Service) {
	for key := range strings.SplitSeq(live.Annotations[OwnAnnotations], ",") {
		if _, wanted := want.Annotations[key]; !wanted {
			delete(live.Annotations, key)
		}
	}
	if len(want.Annotations) == 0 {
		delete(live.Annotations, OwnAnnotations)
		return
	}
	if live.Annotations == nil {
		live.Annotations = map[string]string{}
	}
	maps.Copy(live.Annotations, want.Annotations)
}

// forkPorts are the fork's names of the client port. DNS names (SRV) and ServiceMonitors contain
// them, so they stay in an adopted Service.
var forkPorts = []string{"http-client", "https-client"}

// ofFork reports whether a Service has exactly the selector of the spec, with which the fork
// replaced that of the cluster. Clients know the pods behind it, which may differ. A Service
// without a selector in the spec can't be meant: it would have none.
func ofFork(live, want *corev1.Service) bool {
	replaced := maps.Clone(want.Spec.Selector)
	delete(replaced, api.AppLabel)
	delete(replaced, api.ClusterLabel)
	return len(replaced) > 0 && maps.Equal(live.Spec.Selector, replaced)
}

// mendedPorts returns the desired ports with the values that Kubernetes and load balancers
// have assigned to the live ones.
func mendedPorts(live, want []corev1.ServicePort) []corev1.ServicePort {
	ports := slices.Clone(want)
	for i := range ports {
		p := &ports[i]
		j := slices.IndexFunc(live, func(l corev1.ServicePort) bool { return l.Port == p.Port && l.Protocol == p.Protocol })
		if j >= 0 {
			p.NodePort, p.AppProtocol = live[j].NodePort, live[j].AppProtocol
			if slices.Contains(forkPorts, live[j].Name) {
				p.Name = live[j].Name
			}
		}
	}
	return ports
}
