// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderservice

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// self is where this instance runs.
type self struct {
	addresses []netip.Addr // in the pod's order; never empty
	pod       string       // "" outside of Kubernetes
	uid       types.UID
	node      string
}

// findSelf asks the API server for this instance's own pod.
func (k *Keeper) findSelf(ctx context.Context) (*self, error) {
	pod, err := k.cfg.Kube.CoreV1().Pods(k.cfg.Namespace).Get(ctx, k.cfg.Pod, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		address, err := k.outside(ctx)
		if err != nil {
			return nil, err
		}
		return &self{addresses: []netip.Addr{address}}, nil
	case err != nil:
		return nil, fmt.Errorf("read the operator's own pod %s/%s: %w", k.cfg.Namespace, k.cfg.Pod, err)
	}
	found := &self{pod: pod.Name, uid: pod.UID, node: pod.Spec.NodeName}
	for _, ip := range append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...) {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			found.addresses = append(found.addresses, address.Unmap())
		}
	}
	if len(found.addresses) == 0 {
		return nil, fmt.Errorf("the operator's own pod %s/%s has no address yet", k.cfg.Namespace, k.cfg.Pod)
	}
	return found, nil
}

// outside returns the address from which this process reaches the API server.
func (k *Keeper) outside(ctx context.Context) (netip.Addr, error) {
	server := k.cfg.APIServer
	if server == "" {
		server = hostPort(k.cfg.Kube.CoreV1().RESTClient().Get().URL())
	}
	// This sends nothing: the kernel chooses the source address.
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", server)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the address that the API server %s is reached from: %w", server, err)
	}
	defer conn.Close()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	switch address := local.Addr().Unmap().WithZone(""); {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("find the address that the API server %s is reached from: %w", server, err)
	case address.IsLoopback() || address.IsLinkLocalUnicast():
		return netip.Addr{}, fmt.Errorf("there is no pod %s/%s, and the API server %s is reached from %s, where no pod reaches this operator: run it in a pod, or set MY_POD_NAME to the name of its pod", k.cfg.Namespace, k.cfg.Pod, server, address)
	default:
		return address, nil
	}
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// in returns the pod's address of the Service's first family, and its type. If the pod has
// none, in returns the pod's first address, which no client reaches.
func (s *self) in(families []corev1.IPFamily) (netip.Addr, discoveryv1.AddressType) {
	address := s.addresses[0]
	for _, other := range s.addresses {
		if len(families) > 0 && other.Is6() == (families[0] == corev1.IPv6Protocol) {
			address = other
			break
		}
	}
	if address.Is6() {
		return address, discoveryv1.AddressTypeIPv6
	}
	return address, discoveryv1.AddressTypeIPv4
}
