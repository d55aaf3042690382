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

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// portName is the name of the port in Service and slice: they must be the same.
const portName = "http"

// keepService creates or corrects the Service.
func (k *Keeper) keepService(ctx context.Context) (*corev1.Service, error) {
	services := k.cfg.Kube.CoreV1().Services(k.cfg.Namespace)
	live, err := services.Get(ctx, k.cfg.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		made, err := services.Create(ctx, k.service(), metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("create Service %s: %w", k.cfg.Name, err)
		}
		k.log.Info("created the Service of this operator")
		return made, nil
	case err != nil:
		return nil, fmt.Errorf("read Service %s: %w", k.cfg.Name, err)
	case live.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the Service %s is being deleted; the operator recreates it afterwards", k.cfg.Name)
	case len(live.Spec.Selector) > 0 && !k.selectsOperators(live):
		return nil, fmt.Errorf("the Service %s is somebody else's: it selects pods of its own and is neither this operator's nor that of v0.9.4; rename it, so that the operator can create its own", k.cfg.Name)
	case len(live.Spec.Selector) > 0:
		// Delete v0.9.4's Service with its Endpoints and slices. Without its selector alone,
		// they would stay.
		err := services.Delete(ctx, k.cfg.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(live.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete Service %s, which has a selector: %w", k.cfg.Name, err)
		}
		return nil, fmt.Errorf("the Service %s had a selector, as in v0.9.4, and must be recreated: %w", k.cfg.Name, errAgain)
	}
	mended := k.mendedService(live)
	if mended == nil {
		return live, nil
	}
	updated, err := services.Update(ctx, mended, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("correct Service %s: %w", k.cfg.Name, err)
	}
	k.log.Warn("corrected the Service of this operator, which somebody had edited")
	return updated, nil
}

// selectsOperators reports whether a Service with a selector is v0.9.4's, or ours with a
// selector that somebody has added. The one of v0.9.4 has the labels of the operator's pod as
// its own and as its selector, and only the port that serves backups.
func (k *Keeper) selectsOperators(live *corev1.Service) bool {
	if len(live.Spec.Ports) != 1 || live.Spec.Ports[0].Port != k.cfg.Port {
		return false
	}
	if live.Labels[api.AppLabel] == k.cfg.Name && live.Spec.Ports[0].Name == portName {
		return true
	}
	for name, value := range live.Spec.Selector {
		if has, ok := live.Labels[name]; !ok || has != value {
			return false
		}
	}
	return true
}

// service returns the desired Service. The value of its AppLabel is never AppEtcd, by which
// the etcd operator finds the objects of clusters. As in v0.9.4, it has no owner: it outlives the
// Deployment and finds its next leader.
func (k *Keeper) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: k.cfg.Name, Namespace: k.cfg.Namespace, Labels: map[string]string{api.AppLabel: k.cfg.Name}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Name: portName, Port: k.cfg.Port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(k.cfg.ListenPort),
			}},
		},
	}
}

// mendedService returns a corrected Service, or nil if it needs no change. It keeps other
// fields and labels.
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

// samePort compares the relevant fields of ports; the API server adds others. The slice has
// the target of a Service without a selector.
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
