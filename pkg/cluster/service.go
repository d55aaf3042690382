// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// buildPeerService makes the headless Service that gives each member its DNS
// name. Members need their names before they are ready, to become ready.
func buildPeerService(obj *api.EtcdCluster) *corev1.Service {
	svc := buildService(obj, namesOf(obj).peerService(), servicePort("client", clientPort), servicePort("peer", peerPort))
	svc.Spec.ClusterIP = corev1.ClusterIPNone
	svc.Spec.PublishNotReadyAddresses = true
	return svc
}

// buildClientService makes the Service for clients: it leads to ready members only.
func buildClientService(obj *api.EtcdCluster) *corev1.Service {
	return buildService(obj, namesOf(obj).clientService(), servicePort("client", clientPort))
}

func buildService(obj *api.EtcdCluster, name string, ports ...corev1.ServicePort) *corev1.Service {
	n := namesOf(obj)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       obj.Namespace,
			Labels:          n.labels(),
			OwnerReferences: []metav1.OwnerReference{ownerOf(obj)},
		},
		Spec: corev1.ServiceSpec{Selector: n.labels(), Ports: ports},
	}
}

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)}
}
