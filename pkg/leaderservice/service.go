// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderservice

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// portName is that of the port of Service and slice: they must be the same.
const portName = "http"

// appLabel says whose Service and slice these are. It is never app=etcd, which is how
// the etcd operator finds what belongs to clusters.
const appLabel = "app"

// keepService makes the Service, or puts it right.
func (k *Keeper) keepService(ctx context.Context) (*corev1.Service, error) {
	services := k.cfg.Kube.CoreV1().Services(k.cfg.Namespace)
	live, err := services.Get(ctx, k.cfg.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		made, err := services.Create(ctx, k.service(), metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("create Service %s: %w", k.cfg.Name, err)
		}
		k.log.Info("made the Service of this operator")
		return made, nil
	case err != nil:
		return nil, fmt.Errorf("read Service %s: %w", k.cfg.Name, err)
	case live.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the Service %s is being deleted, and is made again when it is gone", k.cfg.Name)
	case len(live.Spec.Selector) > 0 && !k.selectsOperators(live):
		return nil, fmt.Errorf("the Service %s is somebody else's: it selects pods of its own and is neither this operator's nor that of v0.9.4; give it another name, and it is made here", k.cfg.Name)
	case len(live.Spec.Selector) > 0:
		// That of v0.9.4, whose Endpoints and slices go with it. Without its selector
		// alone they would stay.
		err := services.Delete(ctx, k.cfg.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(live.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete Service %s, which has a selector: %w", k.cfg.Name, err)
		}
		return nil, fmt.Errorf("the Service %s had a selector, as that of v0.9.4, and is made anew: %w", k.cfg.Name, errAgain)
	}
	mended := k.mendedService(live)
	if mended == nil {
		return live, nil
	}
	updated, err := services.Update(ctx, mended, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("put Service %s right: %w", k.cfg.Name, err)
	}
	k.log.Warn("somebody had edited the Service of this operator: put it right")
	return updated, nil
}

// selectsOperators tells whether a Service with a selector is that of v0.9.4, which has
// the labels of the operator's pod both as its own and as its selector, and the one port
// that backups are served on; or ours, to which somebody gave one.
func (k *Keeper) selectsOperators(live *corev1.Service) bool {
	if len(live.Spec.Ports) != 1 || live.Spec.Ports[0].Port != k.cfg.Port {
		return false
	}
	if live.Labels[appLabel] == k.cfg.Name && live.Spec.Ports[0].Name == portName {
		return true
	}
	for name, value := range live.Spec.Selector {
		if has, ok := live.Labels[name]; !ok || has != value {
			return false
		}
	}
	return true
}

// service is as it should be. It has no owner, as that of v0.9.4: it outlives the
// Deployment, and finds its next leader.
func (k *Keeper) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: k.cfg.Name, Namespace: k.cfg.Namespace, Labels: map[string]string{appLabel: k.cfg.Name}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Name: portName, Port: k.cfg.Port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(k.cfg.ListenPort),
			}},
		},
	}
}

// mendedService is a Service put right, or nil where there is nothing to do. What
// other fields and labels it has is whose they are.
func (k *Keeper) mendedService(live *corev1.Service) *corev1.Service {
	want, mended := k.service(), live.DeepCopy()
	setLabels(&mended.ObjectMeta, want.Labels)
	spec := &mended.Spec
	if spec.Type != corev1.ServiceTypeClusterIP {
		// Backups are for this cluster alone.
		spec.Type, spec.ExternalName, spec.LoadBalancerClass, spec.LoadBalancerSourceRanges = corev1.ServiceTypeClusterIP, "", nil, nil
		spec.ExternalTrafficPolicy, spec.HealthCheckNodePort, spec.AllocateLoadBalancerNodePorts = "", 0, nil
	}
	spec.ExternalIPs = nil
	if spec.InternalTrafficPolicy != nil {
		anywhere := corev1.ServiceInternalTrafficPolicyCluster
		spec.InternalTrafficPolicy = &anywhere
	}
	if port := want.Spec.Ports[0]; len(spec.Ports) != 1 || !samePort(spec.Ports[0], port) {
		spec.Ports = []corev1.ServicePort{port}
	} else {
		spec.Ports[0].NodePort = 0
	}
	if equality.Semantic.DeepEqual(live, mended) {
		return nil
	}
	return mended
}

// samePort compares what counts of ports; the API server adds to them. To where a
// Service without a selector leads, the slice says.
func samePort(a, b corev1.ServicePort) bool {
	return a.Name == b.Name && a.Port == b.Port && a.Protocol == b.Protocol
}

func setLabels(o *metav1.ObjectMeta, labels map[string]string) {
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	for name, value := range labels {
		o.Labels[name] = value
	}
}
